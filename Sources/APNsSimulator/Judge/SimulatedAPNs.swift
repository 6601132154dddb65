/// The push service that is simulated.
package enum SimulatedService: Sendable {
    case apns
    /// The services of browsers (RFC 8030).
    case webPush
    /// Firebase Cloud Messaging (HTTP v1), with the token endpoint.
    case fcm
}

/// A push service as a value: requests and the time go in, orders come out.
///
/// It has no socket. The caller reports connections, requests and their ends, and performs the
/// orders (``Effect``) in sequence.
package struct SimulatedAPNs: Sendable {
    /// The settings of the simulation.
    package struct Terms: Sendable {
        package var service = SimulatedService.apns
        package var environment = SimulatedEnvironment.sandbox
        /// The senders that FCM knows.
        package var senders: [FCMSender] = []
        /// The keys whose provider tokens are accepted.
        package var keys: [ProviderKey] = []
        /// The requirements on requests.
        package var rules = PushRules()
        /// The number of concurrent requests on a connection with provider tokens until the first
        /// was accepted.
        package var streamsBeforeSuccess = 1
        /// The number of concurrent requests after that.
        package var streamsMax = 1_000
        /// The lifetime of a provider token after `iat`, seconds.
        package var providerTokenAgeMax: Int64 = 3_600
        /// The shortest interval between different provider tokens on a connection, ms.
        package var providerTokenUseMin: Int64 = 1_200_000
        /// The random faults; their shares add up.
        package var faults: [PushFault] = []
        /// The seed of the faults and of generated ids.
        package var seed: UInt64 = 1
        /// The number of pushes whose `apns-id` is stored.
        package var idsMax = 1_000_000
        /// The number of channels that an app may have.
        package var channelsMax = 10_000

        package init() {}

        /// The settings of a service other than APNs.
        package init(_ service: SimulatedService, senders: [FCMSender] = []) {
            (self.service, self.senders) = (service, senders)
            streamsBeforeSuccess = streamsMax
        }
    }

    /// The time of an event.
    package struct Moment: Sendable, Hashable {
        /// The monotonic time, ms.
        package var now: Int64
        /// The time in ms since 1970.
        package var wall: Int64

        package init(now: Int64, wall: Int64) {
            self.now = now
            self.wall = wall
        }
    }

    /// An order for a connection.
    package enum Effect: Sendable, Hashable {
        /// Send SETTINGS with SETTINGS_MAX_CONCURRENT_STREAMS.
        case settings(streamsMax: Int)
        /// Send HEADERS and DATA that end a stream.
        case answer(stream: Int, PushAnswer, id: PushID, idField: String)
        /// Send RST_STREAM with REFUSED_STREAM or INTERNAL_ERROR.
        case reset(stream: Int, isRefused: Bool)
        /// Send GOAWAY with the last processed stream, and a JSON body with a reason.
        case goAway(lastStream: Int, reason: String)
        /// Call ``SimulatedAPNs/waited(_:on:at:_:)`` after this many milliseconds.
        case wait(stream: Int, milliseconds: Int)
        /// Close the connection in an orderly way, once no request is incomplete.
        case close
        /// Reset the connection.
        case cut
    }

    /// The decision about a request, for observers.
    package struct Decision: Sendable, Hashable {
        package let request: PushRequest
        /// The handling of the request.
        package let behaviour: PushBehaviour
    }

    struct Connection: Sendable {
        let number: Int
        /// The topics that its certificate allows; `nil` without a certificate.
        let certificateTopics: Set<String>?
        /// The last sent SETTINGS_MAX_CONCURRENT_STREAMS.
        var streamsMax: Int
        /// Whether a push was accepted.
        var hasSucceeded = false
        /// The key of its first provider token.
        var keyID: String?
        /// The field with its latest provider token, and the time since when it is used.
        var authorization: String?
        var authorizedSince: Int64 = 0
        /// The requests in flight.
        var open: [Int: Open] = [:]
        /// The last stream to be processed after GOAWAY.
        var lastStream: Int?
        var isClosing = false
    }

    /// A request in flight.
    struct Open: Sendable {
        let push: Push
        /// The response after a wait.
        let answer: PushAnswer?
    }

    /// A request with its device token or channel, its id, and the content for a Live Activity.
    struct Push: Sendable {
        let token: String
        let id: PushID
        let request: PushRequest
        let activity: ActivityPush?
    }

    let terms: Terms
    let draw: FaultDraw
    var tokens: ProviderTokens
    var webPush = WebPushRules()
    var fcm: FCMRules
    var connections: [Int: Connection] = [:]
    var answered: AnsweredPushes
    var idsMade: UInt64 = 0
    private var lastConnection = 0
    var kept = PushRecord()

    package init(_ terms: Terms) {
        self.terms = terms
        fcm = FCMRules(terms.senders)
        draw = FaultDraw(terms.faults, seed: terms.seed)
        tokens = ProviderTokens(
            terms.keys, environment: terms.environment, ageMax: terms.providerTokenAgeMax)
        answered = AnsweredPushes(capacity: terms.idsMax)
    }

    /// The record of all events so far.
    package var record: PushRecord {
        var record = kept
        record.providerTokens = tokens.valid
        return record
    }

    /// Sets the behavior for the next pushes to a device token or channel, one after the other; the
    /// last one repeats. Rules take precedence, and random faults do not apply. FCM's token endpoint
    /// is called by its path, ``PushRequest/tokenPath``.
    package mutating func script(_ token: String, _ behaviours: [PushBehaviour]) {
        kept.devices[token, default: DeviceRecord()].script = behaviours
        kept.devices[token]?.isDead = false
    }

    /// Ends every connection by GOAWAY; requests in flight still get a response. Returns the orders
    /// by connection.
    package mutating func goAway(reason: String) -> [(connection: Int, effects: [Effect])] {
        connections.keys.sorted().map { number in
            var effects: [Effect] = []
            change(number, &effects) { _, connection, effects in
                guard connection.lastStream == nil else { return }
                let last = connection.open.keys.max() ?? 0
                connection.lastStream = last
                effects.append(.goAway(lastStream: last, reason: reason))
            }
            return (number, effects)
        }
    }

    // MARK: What happens

    /// Records that a connection was opened. Returns its number, and the
    /// SETTINGS_MAX_CONCURRENT_STREAMS of its first SETTINGS.
    ///
    /// - Parameter certificateTopics: The topics of the client's certificate, which replaces
    ///   provider tokens; `nil` without one.
    package mutating func opened(
        certificateTopics: Set<String>?, at moment: Moment
    ) -> (connection: Int, streamsMax: Int) {
        lastConnection += 1
        let streamsMax =
            certificateTopics == nil ? terms.streamsBeforeSuccess : terms.streamsMax
        connections[lastConnection] = Connection(
            number: lastConnection, certificateTopics: certificateTopics, streamsMax: streamsMax)
        kept.openConnections += 1
        if kept.connections.count < PushRecord.connectionsMax {
            kept.connections.append(moment.now)
        }
        return (lastConnection, streamsMax)
    }

    /// Records the end of a connection.
    package mutating func closed(_ connection: Int) {
        guard let known = connections.removeValue(forKey: connection) else { return }
        kept.openConnections -= 1
        // Responses may have been in flight as well.
        if !known.open.isEmpty { answered.lost.insert(connection) }
    }

    /// Records that the client cancelled a request.
    package mutating func reset(stream: Int, on connection: Int, _ effects: inout [Effect]) {
        change(connection, &effects) { _, connection, _ in connection.open[stream] = nil }
    }

    /// Records that the client opened more streams than SETTINGS allow, which ends the connection.
    package mutating func overdrew(_ connection: Int) {
        if let connection = connections[connection] { kept.note(Self.excess(on: connection)) }
    }

    /// Handles a request with its whole body, or with more than the allowed body. Returns the
    /// decision; `nil` when the request is not processed.
    package mutating func requested(
        _ request: PushRequest, stream: Int, on connection: Int, at moment: Moment,
        _ effects: inout [Effect]
    ) -> Decision? {
        var decision: Decision?
        change(connection, &effects) { apns, connection, effects in
            // The request was in flight when GOAWAY was sent.
            if let last = connection.lastStream, stream > last { return }
            decision = apns.decide(
                request, stream: stream, on: &connection, at: moment, effects: &effects)
        }
        return decision
    }

    /// Handles the end of the wait of ``Effect/wait(stream:milliseconds:)``.
    package mutating func waited(
        _ stream: Int, on connection: Int, at moment: Moment, _ effects: inout [Effect]
    ) {
        change(connection, &effects) { apns, connection, effects in
            guard let open = connection.open.removeValue(forKey: stream), let answer = open.answer
            else { return }
            apns.answer(
                answer, to: open.push, stream: stream, on: &connection, at: moment,
                effects: &effects)
        }
    }

    /// Returns the violation of too many concurrent requests on a connection.
    static func excess(on connection: Connection) -> PushViolation {
        connection.hasSucceeded || connection.certificateTopics != nil ? .tooManyStreams : .burst
    }

    private mutating func change(
        _ number: Int, _ effects: inout [Effect],
        _ body: (inout SimulatedAPNs, inout Connection, inout [Effect]) -> Void
    ) {
        // Removed from the dictionary during the change to avoid a copy.
        guard var connection = connections.removeValue(forKey: number) else { return }
        body(&self, &connection, &effects)
        if connection.lastStream != nil, connection.open.isEmpty, !connection.isClosing {
            connection.isClosing = true
            effects.append(.close)
        }
        connections[number] = connection
    }
}
