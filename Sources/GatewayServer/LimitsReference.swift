import GatewayEngine
import GatewayOperations
import GatewaySigning
import GatewayStorage
import GatewayTLS
import NIOCore
import WidgetModel

/// The limits that an honest peer can meet: those with an option, and the fixed ones.
enum LimitsReference {
    static var markdown: String {
        var text = "## With an option\n\n| option | default | description |\n|---|---|---|\n"
        for option in ConfigurationSchema.options
        where ["limits.", "rates.", "streams.", "retention."].contains(where: option.key.hasPrefix)
        {
            text += "| `\(option.key)` | \(option.standard) | \(option.help) |\n"
        }
        text += "\n## Fixed\n\n| limit | value | beyond it |\n|---|---|---|\n"
        for (limit, value, outcome) in fixed { text += "| \(limit) | \(value) | \(outcome) |\n" }
        return text + behindBalancers
    }

    private static var fixed: [(limit: String, value: String, outcome: String)] {
        let (tls, http, limits) = (TLSServerSettings(), ConnectionSettings(), Limits())
        let (bytes, rate) = (http.headerBytesMax, http.bodyBytesPerSecond)
        let (closed, rejected, busy) = ("the connection is closed", "422", "503")
        let store = StoreConfiguration()
        let frames = ConnectionSettings.idleFramesMax
        let goAway = "GOAWAY `ENHANCE_YOUR_CALM`"
        return [
            ("TLS handshake", words(tls.handshakeTimeout), closed),
            ("from the handshake to the first request", words(tls.firstRequestTimeout), closed),
            ("header of a request", "\(bytes / 1_024) KiB, \(http.headerFieldsMax) fields", "431"),
            (
                "pace of a body",
                "\(rate / 1_024) KiB/s, averaged over \(words(http.bodyPause)), of it or of all "
                    + "bodies of its HTTP/2 connection together; \(words(http.bodyTimeout)) in all. "
                    + "Time in which the gateway does not read does not count", "408"
            ),
            (
                "rest of a body after its response", "\(http.restBytesMax / 1_024) KiB",
                "the response says `Connection: close`; the rest is dropped for up to "
                    + words(http.lingerTimeout)
            ),
            (
                "pause in the reading of a response", words(http.answerTimeout),
                "\(closed), over HTTP/2 the stream"
            ),
            (
                "requests at once of an HTTP/2 connection", "\(http.concurrentRequestsMax)",
                "`REFUSED_STREAM`"
            ),
            (
                "header of an HTTP/2 request that is decoded",
                "\(http.headerBytesDecodedMax / 1_024) KiB", closed
            ),
            (
                "RST_STREAM, and errors of streams, of an HTTP/2 connection",
                "\(frames) of each in \(ConnectionSettings.resetSeconds) s", goAway
            ),
            (
                "PING, SETTINGS and PRIORITY of an HTTP/2 connection",
                "\(frames) in \(ConnectionSettings.controlSeconds) s", goAway
            ),
            ("empty DATA frames, one after the other", "\(frames)", goAway),
            ("input before the first request", words(tls.arrivalInput), closed),
            ("TLS records without content", words(tls.emptyRecords), "\(closed) with an alert"),
            ("unread answers of TLS", "\(tls.unreadAnswersBytesMax / 1_024) KiB", closed),
            ("input of the reader of a stream", words(tls.readerInput), "the stream ends"),
            ("one TLS record of such a reader", words(tls.recordTimeout), "the stream ends"),
            ("bodies that wait for memory", "\(RequestLimits.bodiesWaitingMax)", busy),
            ("registrations of a client that wait", "\(RegistrationLocks.waitingMax)", busy),
            (
                "writes that wait for the disk",
                "\(store.pendingJobsMax), \(store.pendingCostMax >> 20) MiB", busy
            ),
            ("changes that streams still have to be told of", "\(EngineLog.backlogMax)", busy),
            ("explanations that wait", "\(ExplainTurns.waitingMax)", busy),
            ("requests in flight when the gateway stops", "20 s", closed),
            (
                "longest `wait` of a poll", "\(GatewayRoutes.waitSecondsMax) s",
                "answered without news"
            ),
            (
                "tolerance of a token's times",
                "\(TokenPolicy(issuers: [], audiences: []).leeway) s",
                "401; a stream ends"
            ),
            (
                "time in which a ticket is good, once", "\(StreamTickets.lifetimeSeconds) s", "401"
            ),
            (
                "memory of tickets", "\(StreamTickets.bytesMax >> 20) MiB",
                "the oldest are forgotten: 401"
            ),
            (
                "reader of a stream that vanished",
                "`streams.stall` plus `streams.heartbeat`, at least "
                    + "\(ListeningSocket.userTimeoutMin / 1_000) s, after a heartbeat", closed
            ),
            ("attributes of a change or client", "\(limits.attributesMax)", rejected),
            ("properties of a change or entity", "\(limits.propertiesMax)", rejected),
            ("values of a list", "\(limits.listValuesMax)", rejected),
            ("recommended items of a kind", "\(limits.recommendationItemsMax)", rejected),
            ("delivery addresses of a registration", "\(limits.deliveriesMax)", rejected),
            (
                "Live Activities of a registration, and types to start",
                "\(limits.registrationActivitiesMax) of each", rejected
            ),
            (
                "attributes of a Live Activity", "\(limits.activityBytesMax / 1_024) KiB",
                rejected
            ),
            ("a start of Live Activities", "\(limits.startBytesMax / 1_024) KiB", "413"),
            ("rules of a kind", "\(limits.kindRulesMax)", rejected),
            ("bindings of a rule", "\(limits.bindingsMax)", rejected),
            ("values of a change at a rule", "\(limits.changeRuleKeysMax)", rejected),
        ]
    }

    private static func words(_ rate: InputBudget.Rate) -> String {
        "\(rate.burst / 1_024) KiB, regained at \(rate.perSecond / 1_024) KiB/s"
    }

    private static func words(_ time: TimeAmount) -> String {
        let seconds = time.nanoseconds / 1_000_000_000
        return seconds % 60 == 0 ? "\(seconds / 60) min" : "\(seconds) s"
    }

    private static let behindBalancers = """

        ## Behind a balancer or proxy

        - Name it in `proxies.trusted`, so that addresses are those of its clients: otherwise everybody shares \
        the limits of one address. Without its PROXY protocol or `Forwarded`, raise \
        `limits.connectionsPerAddress` and `rates.address`.
        - Let it keep idle connections to the gateway for less than `limits.idleTimeout`, and \
        let streams live: its time without bytes has to be longer than `streams.heartbeat`.
        - Over HTTP/2, let it open further connections when one has all requests that it may have.

        """
}
