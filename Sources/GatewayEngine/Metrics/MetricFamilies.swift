import GatewayCore
import GatewayTelemetry

/// Every metric of the gateway, in the order of the page: the only place that names and explains
/// them.
extension MetricFamily {
    /// The maximum number of distinct kinds.
    private static let kindsMax = 50
    /// The maximum number of distinct apps.
    private static let appsMax = 50

    private static let kind = Label("kind", valuesMax: kindsMax)
    private static let app = Label("app", valuesMax: appsMax)
    private static let channel = Label("channel", valuesMax: DeliveryChannel.allCases.count)
    /// The channel of push attempts: an APNs push type, `webhook`, `webpush` or `fcm`.
    private static let pushChannel = Label("channel", valuesMax: 8)

    private static let freshness = Kind.histogram(bounds: [
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300, 3600,
    ])
    private static let commits = Kind.histogram(bounds: [
        0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2,
    ])

    private static func own(
        _ name: String, _ kind: Kind, unit: String? = nil, labels: [Label] = [], _ help: String
    ) -> MetricFamily {
        MetricFamily("timeline_gateway_" + name, kind, unit: unit, labels: labels, help)
    }

    // MARK: Freshness

    package static let freshnessDecided = own(
        "freshness_decided_seconds", freshness, unit: "seconds",
        "Time from a change's acceptance until an event loop has decided what it makes stale, once "
            + "per change and event loop.")
    package static let freshnessSent = own(
        "freshness_sent_seconds", freshness, unit: "seconds", labels: [channel, kind],
        "Time from a change's acceptance to its notification, once per notification and event "
            + "loop, poll or push. A notification for several kinds counts as kind `several`.")
    package static let freshnessConfirmed = own(
        "freshness_confirmed_seconds", freshness, unit: "seconds", labels: [channel, kind],
        "Time from a change's acceptance to the report of its rebuild, counted when a cursor of "
            + "the client covers the change.")
    package static let oldestUnconfirmed = own(
        "oldest_unconfirmed_seconds", .gauge, unit: "seconds",
        labels: [app, Label("clients", valuesMax: 2)],
        "Age of the oldest change that a client depends on and has not confirmed, by an "
            + "acknowledgement or by resuming after it; 0 if there is none. `connected` clients "
            + "have a stream open; `away` are the others seen since the gateway started. A scan "
            + "over all clients takes seconds, or minutes with a million clients.")
    static let rebuildSeconds = own(
        "rebuild_seconds", freshness, unit: "seconds",
        "Duration of rebuilds, as reported by clients.")
    package static let needlessReloads = own(
        "needless_reloads", .counter, labels: [kind, Label("reason", valuesMax: 2)],
        "Reloads that were not needed, as far as the gateway knows. `acknowledged`: a push was "
            + "accepted after its client had acknowledged all that it reports; one for several "
            + "kinds counts as kind `several`. `unchanged`: a client reported that the timeline "
            + "which it rebuilt for a change is equal to the one before.")

    // MARK: Changes

    package static let changesAccepted = own(
        "changes_accepted", .counter, "Changes accepted: on disk and acknowledged with 202.")
    static let changesDuplicate = own(
        "changes_duplicate", .counter, "Duplicate events, already on disk.")
    package static let changesUnmatched = own(
        "changes_unmatched", .counter, "Accepted changes that matched no rule.")
    package static let changesBroad = own(
        "changes_broad", .counter,
        "Accepted changes without an attribute that a rule matches; they reload all clients that it "
            + "would distinguish.")
    static let decisions = own(
        "decisions", .counter, "Dependency keys invalidated by accepted changes.")
    package static let collapsed = own(
        "collapsed", .counter,
        "Invalidated keys held until the end of a collapse window, once per event loop with a "
            + "stream that depends on them.")

    // MARK: Streams, polls and clients

    package static let clients = own("clients", .gauge, "Registered clients.")
    package static let appClients = own(
        "app_clients", .gauge, labels: [app],
        "Registered clients of an app; limited by `limits.clientsPerApp`. With more apps than "
            + "values, the apps with the most clients are shown.")
    package static let streams = own("streams", .gauge, "Open streams.")
    package static let streamsLagging = own(
        "streams_lagging", .gauge,
        "Streams whose client is not reading and whose send buffer is full.")
    static let streamsOpened = own("streams_opened", .counter, "Streams opened.")
    static let streamsLagged = own(
        "streams_lagged", .counter, "Times a stream's send buffer was full.")
    static let streamsStalled = own(
        "streams_stalled", .counter, "Streams closed because the client did not read.")
    static let streamsReplaced = own(
        "streams_replaced", .counter,
        "Streams and waiting polls ended because the client began more than `streams.perClient`.")
    package static let streamsEnded = own(
        "streams_ended_for_input", .counter, labels: [Label("reason", valuesMax: 4)],
        "Streams closed because of what the client sent: `flood`: too much data; "
            + "`incomplete_record`: an incomplete TLS record.")
    static let streamSeconds = own(
        "stream_seconds", .histogram(bounds: [1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800]),
        unit: "seconds", "Duration of closed streams.")
    package static let deliveries = own(
        "deliveries", .counter, "Notifications written to streams.")
    package static let signatures = own("signatures", .counter, "Notifications signed.")
    package static let polls = own("polls", .counter, "Polls answered.")
    package static let acknowledgements = own(
        "acknowledgements", .counter, "Acknowledgements accepted.")
    package static let rebuildFailures = own(
        "rebuild_failures", .counter, "Rebuilds that clients reported as failed.")

    // MARK: Pushes

    package static let pushes = own(
        "pushes", .counter,
        labels: [
            pushChannel, Label("outcome", valuesMax: 16), Label("reason", valuesMax: 60),
        ], "Completed pushes, by outcome.")
    static let pushSeconds = own(
        "push_seconds", .histogram(bounds: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60]),
        unit: "seconds", labels: [pushChannel], "Time from a push's start to its outcome.")
    static let contentRequests = own(
        "content_requests", .counter, labels: [app, Label("outcome", valuesMax: 16)],
        "Pushes for Live Activities that needed content: `asked` of its source, `kept` from "
            + "another push, `nothing` for 204, otherwise the reason why there is none.")
    package static let pushStandings = own(
        "push_standings", .gauge, labels: [Label("state", valuesMax: 7)],
        "Push targets by state. The timelines, the recommendation sets, each control and each "
            + "Live Activity of a client are one target each. `withheld` waits for its budget; "
            + "`refused` was rejected permanently, until the next change.")
    static let pushEvents = own(
        "push_events", .counter, labels: [Label("event", valuesMax: PushAlert.allCases.count)],
        "Push problems that need an operator: rejections by a push service, disabled webhooks and "
            + "failing sources of content.")
    package static let providerTokenAge = own(
        "apns_provider_token_age_seconds", .gauge, unit: "seconds",
        labels: [Label("issuer", valuesMax: 50)],
        "Age of the current provider token, by team and key. It is renewed within the hour.")

    // MARK: The log

    package static let logHead = own("log_head", .gauge, "Sequence of the last log entry.")
    package static let logFloor = own(
        "log_floor", .gauge, "Sequence of the last log entry removed by retention.")
    package static let appLogBytes = own(
        "app_log_bytes", .gauge, unit: "bytes", labels: [app],
        "Size of an app's changes and catalogs in the log; limited by `limits.logBytesPerApp`. "
            + "With more apps than values, the apps with the largest logs are shown.")
    package static let shardPosition = own(
        "shard_position_lowest", .gauge,
        "Highest log sequence applied by every event loop.")
    package static let versionKeys = own(
        "version_keys", .gauge, labels: [app],
        "Keys whose versions are in memory, on the event loop with the most.")
    package static let versionKeysMax = own(
        "version_keys_max", .gauge, labels: [app],
        "Limit of keys whose versions are in memory.")
    package static let versionDistance = own(
        "version_floor_distance", .gauge, labels: [app],
        "Log entries between the oldest version in memory and the last entry. A client that "
            + "resumes from further back rebuilds everything.")
    package static let cursorsAhead = own(
        "cursors_ahead", .counter,
        "Cursors newer than the log: the end of the log was lost, as after a restore without a new "
            + "epoch.")
    package static let commitSeconds = own(
        "store_commit_seconds", commits, unit: "seconds",
        "Duration of a transaction, including the sync.")
    static let commitJobs = own(
        "store_commit_jobs", .histogram(bounds: [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000]),
        "Writes per transaction.")
    package static let commitTotal = own("store_commits", .counter, "Transactions committed.")
    package static let commitFailures = own(
        "store_commit_failures", .counter, "Failed transactions.")
    package static let jobsRefused = own(
        "store_jobs_refused", .counter, "Writes rejected because the write queue was full.")
    package static let jobsWaiting = own(
        "store_jobs_waiting", .gauge, "Writes in the write queue.")
    static let requestsRefused = own(
        "requests_refused", .counter, labels: [Label("reason", valuesMax: 8)],
        "Requests rejected by a limit: the rate of an `address`, `app` or `client`, "
            + "`tickets` or `push_addresses` of a client, `refused_tokens` of an address (429), or "
            + "`bytes_in_work` (503).")
    package static let requestBytesInWork = own(
        "request_in_work_bytes", .gauge, unit: "bytes",
        "Bytes of request bodies being received or processed; limited by "
            + "`limits.requestBytesInWork`.")
    package static let databaseBytes = own(
        "store_database_bytes", .gauge, unit: "bytes", "Size of the database.")
    package static let walBytes = own(
        "store_wal_bytes", .gauge, unit: "bytes", "Size of the write-ahead log.")
    package static let leads = own(
        "leads", .gauge,
        "1 if this gateway writes the log and pushes, else 0: of the nodes of a cluster one does.")
    package static let leaderGeneration = own(
        "cluster_generation", .gauge,
        "Number of times that a node has become leader; 0 while there is no leader.")

    package static let leaderReached = own(
        "cluster_leader_reached", .gauge,
        "0 if this node has not reached the one that leads for 10 s: it cannot pass requests on.")

    // MARK: TLS and keys

    package static let handshakes = own(
        "tls_handshakes", .counter, labels: [Label("kind", valuesMax: 2)], "Completed handshakes.")
    package static let handshakesFailed = own(
        "tls_handshakes_failed", .counter, labels: [Label("reason", valuesMax: 32)],
        "Failed handshakes.")
    package static let connections = own(
        "connections", .gauge,
        "Open connections to the TLS port, streams included; limited by limits.connections.")
    package static let connectionsRefused = own(
        "connections_refused", .counter, labels: [Label("reason", valuesMax: 4)],
        "Connections to the TLS port closed on acceptance. `address`: the source address had "
            + "reached limits.connectionsPerAddress. `connections`, `files`: pauses in which new ones "
            + "wait, because of limits.connections or the limit of open files.")
    package static let connectionsEnded = own(
        "connections_ended", .counter, labels: [Label("reason", valuesMax: 8)],
        "Connections to the TLS port, or requests, ended because of what the client did. `body`: a "
            + "body came too slowly (408); `unread`: a response was not read; `h2_flood`: too many "
            + "HTTP/2 frames such as RST_STREAM or PING; `h2_protocol`: what violates HTTP/2; "
            + "`empty_records`: too many records without content, such as key updates; `malformed`: "
            + "what violates TLS; `unread_answers`: messages that demand answers, which it did not "
            + "read.")
    static let answersUnread = own(
        "answers_unread", .counter,
        "Responses abandoned because the client did not read them.")
    package static let tlsBytes = own(
        "tls_bytes", .counter, unit: "bytes", labels: [Label("path", valuesMax: 2)],
        "Ciphertext bytes sent.")
    package static let certificateEnds = own(
        "tls_certificate_not_after_seconds", .gauge, unit: "seconds",
        "Expiry of the server certificate, in seconds since 1970.")
    package static let pushCertificateEnds = own(
        "apns_certificate_not_after_seconds", .gauge, unit: "seconds", labels: [app],
        "Expiry of an app's APNs certificate, in seconds since 1970; of several, the earliest.")
    package static let signingKeyAge = own(
        "signing_key_age_seconds", .gauge, unit: "seconds",
        "Time since the current notification key started to sign.")

    // MARK: Threads

    static let turnCPU = own(
        "turn_cpu_seconds",
        .histogram(bounds: [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5]),
        unit: "seconds",
        labels: [Label("thread", valuesMax: SharedThread.allCases.count)],
        "CPU time of one turn of the threads that all apps share. `event_loop`: one poll of its "
            + "sockets with all resulting work; `push`: the events that the push loop handles in "
            + "one go; `arrivals`: one event of a new connection; `writer`: the longest write of "
            + "each transaction; `requests`: the work of a request between two waits. Work that "
            + "may take longer than 5 ms, such as reading a large document, runs on a separate "
            + "thread, `documents`, whose long turns delay only other large documents.")

    // MARK: The process

    static let reloads = own(
        "configuration_reloads", .counter, labels: [Label("outcome", valuesMax: 3)],
        "Configuration reloads: `applied`, `unchanged`, or `refused` because the configuration is "
            + "invalid.")
    static let issuerKeyFetches = own(
        "issuer_key_fetches", .counter, labels: [Label("outcome", valuesMax: 2)],
        "Fetches of issuers' key sets from their URLs: `fetched`, or `failed`, after which the set "
            + "from before stays in force.")
    package static let spans = own(
        "trace_spans", .counter, labels: [Label("outcome", valuesMax: 4)],
        "Recorded spans: `exported` to the collector, `refused` by it, `undelivered` because it "
            + "was unreachable or too slow, `dropped` because the queue was full.")
    package static let build = own(
        "build", .info,
        labels: ["version", "swift", "openssl", "libcurl", "nghttp2", "sqlite"].map {
            Label($0, valuesMax: 1)
        }, "Versions of the gateway and its libraries.")
    package static let processCPU = MetricFamily(
        "process_cpu_seconds", .counter, unit: "seconds", "CPU time used.")
    package static let processStart = MetricFamily(
        "process_start_time_seconds", .gauge, unit: "seconds",
        "When the process started, in seconds since 1970.")
    package static let processResident = MetricFamily(
        "process_resident_memory_bytes", .gauge, unit: "bytes", "Resident memory.")
    package static let processVirtual = MetricFamily(
        "process_virtual_memory_bytes", .gauge, unit: "bytes", "Virtual memory.")
    package static let processFiles = MetricFamily(
        "process_open_fds", .gauge, "Open file descriptors.")
    package static let processFilesMax = MetricFamily(
        "process_max_fds", .gauge, "Limit of open file descriptors.")

    package static let gateway: [MetricFamily] = [
        freshnessDecided, freshnessSent, freshnessConfirmed, oldestUnconfirmed, rebuildSeconds,
        needlessReloads,
        changesAccepted, changesDuplicate, changesUnmatched, changesBroad, decisions, collapsed,
        clients, appClients, streams, streamsLagging, streamsOpened, streamsLagged, streamsStalled,
        streamsReplaced, streamsEnded,
        streamSeconds, deliveries, signatures, polls, acknowledgements, rebuildFailures,
        pushes, pushSeconds, contentRequests, pushStandings, pushEvents,
        providerTokenAge,
        logHead, logFloor, appLogBytes, shardPosition, versionKeys, versionKeysMax, versionDistance,
        cursorsAhead, commitSeconds, commitJobs, commitTotal, commitFailures, jobsRefused,
        jobsWaiting, requestsRefused, requestBytesInWork, databaseBytes, walBytes,
        leads, leaderGeneration, leaderReached,
        handshakes, handshakesFailed, connections, connectionsRefused, connectionsEnded,
        answersUnread, tlsBytes, certificateEnds,
        pushCertificateEnds,
        signingKeyAge, turnCPU,
        reloads, issuerKeyFetches, spans, build, processCPU, processStart, processResident,
        processVirtual, processFiles, processFilesMax,
    ]
}
