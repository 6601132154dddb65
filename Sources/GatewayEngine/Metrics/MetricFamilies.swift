import OpenMetrics

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
    /// The channel of push attempts: an APNs push type, or `webhook`.
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
        "From a change's acceptance until an event loop knows what it makes stale, once for each "
            + "change and loop.")
    package static let freshnessSent = own(
        "freshness_sent_seconds", freshness, unit: "seconds", labels: [channel, kind],
        "From a change's acceptance to its notification: once for each notification and event "
            + "loop, poll or push that told of it. A notification of several kinds counts for "
            + "the kind `several`.")
    package static let freshnessConfirmed = own(
        "freshness_confirmed_seconds", freshness, unit: "seconds", labels: [channel, kind],
        "From a change's acceptance to the report of its rebuild, once a cursor of the client "
            + "covers the change.")
    package static let oldestUnconfirmed = own(
        "oldest_unconfirmed_seconds", .gauge, unit: "seconds",
        labels: [app, Label("clients", valuesMax: 2)],
        "Age of the oldest change that a client depends on and has not confirmed, by an "
            + "acknowledgement or by resuming after it; 0 when all are. `connected` clients hold a "
            + "stream; `away` are others that were heard of since the gateway started. Every client "
            + "is looked at in turn, which takes seconds, and minutes where they are a million.")
    static let rebuildSeconds = own(
        "rebuild_seconds", freshness, unit: "seconds",
        "How long clients say that a rebuild took.")

    // MARK: Changes

    package static let changesAccepted = own(
        "changes_accepted", .counter, "Changes on disk and answered 202.")
    static let changesDuplicate = own(
        "changes_duplicate", .counter, "Events that were on disk already.")
    package static let changesUnmatched = own(
        "changes_unmatched", .counter, "Accepted changes that hit no rule.")
    package static let changesBroad = own(
        "changes_broad", .counter, "Accepted changes that hit a rule for lack of an attribute.")
    static let decisions = own(
        "decisions", .counter, "Dependency keys raised by accepted changes.")
    package static let collapsed = own(
        "collapsed", .counter,
        "Raised keys that wait for the end of a collapse window, once for each event loop with a "
            + "stream that depends on them.")

    // MARK: Streams, polls and clients

    package static let clients = own("clients", .gauge, "Clients registered.")
    package static let appClients = own(
        "app_clients", .gauge, labels: [app],
        "Clients registered with an app; at most `limits.clientsPerApp`. Of more apps those with "
            + "the most.")
    package static let streams = own("streams", .gauge, "Streams open.")
    package static let streamsLagging = own(
        "streams_lagging", .gauge, "Streams that take no more bytes now.")
    static let streamsOpened = own("streams_opened", .counter, "Streams opened.")
    static let streamsLagged = own(
        "streams_lagged", .counter, "Times a stream could not take more bytes.")
    static let streamsStalled = own(
        "streams_stalled", .counter, "Streams closed because they took no bytes.")
    package static let streamsEnded = own(
        "streams_ended_for_input", .counter, labels: [Label("reason", valuesMax: 4)],
        "Streams ended because of what their readers sent: `flood` is more than a reader of events "
            + "has to say, `incomplete_record` a TLS record whose rest did not come.")
    static let streamSeconds = own(
        "stream_seconds", .histogram(bounds: [1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800]),
        unit: "seconds", "How long streams were open, once they ended.")
    package static let deliveries = own(
        "deliveries", .counter, "Notifications written to streams.")
    package static let signatures = own("signatures", .counter, "Notifications signed.")
    package static let polls = own("polls", .counter, "Polls answered.")
    package static let acknowledgements = own(
        "acknowledgements", .counter, "Acknowledgements taken.")
    package static let rebuildFailures = own(
        "rebuild_failures", .counter, "Rebuilds that clients reported as failed.")

    // MARK: Pushes

    package static let pushes = own(
        "pushes", .counter,
        labels: [
            pushChannel, Label("outcome", valuesMax: 16), Label("reason", valuesMax: 60),
        ], "Pushes that ended, by what came of them.")
    static let pushSeconds = own(
        "push_seconds", .histogram(bounds: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60]),
        unit: "seconds", labels: [pushChannel], "From a push's start to its outcome.")
    package static let pushStandings = own(
        "push_standings", .gauge, labels: [Label("state", valuesMax: 7)],
        "What can be pushed for, by how it stands: the timelines, the recommendation sets and "
            + "each control of a client are one each. `withheld` waits for its budget; "
            + "`refused` was refused for good, until the next change.")
    static let pushEvents = own(
        "push_events", .counter, labels: [Label("event", valuesMax: 8)],
        "What an operator has to know of pushes: what APNs refuses, and webhooks that are not "
            + "asked any more.")
    package static let providerTokenAge = own(
        "apns_provider_token_age_seconds", .gauge, unit: "seconds",
        labels: [Label("issuer", valuesMax: 50)],
        "Age of the provider token in use, by team and key; it is made anew within the hour.")

    // MARK: The log

    package static let logHead = own("log_head", .gauge, "Sequence of the last log entry.")
    package static let logFloor = own(
        "log_floor", .gauge, "Sequence of the last log entry that was forgotten.")
    package static let appLogBytes = own(
        "app_log_bytes", .gauge, unit: "bytes", labels: [app],
        "Bytes of an app's changes and catalogs in the log; at most `limits.logBytesPerApp`. Of "
            + "more apps those with the most.")
    package static let shardPosition = own(
        "shard_position_lowest", .gauge,
        "Sequence of the last log entry that every event loop has applied.")
    package static let versionKeys = own(
        "version_keys", .gauge, labels: [app],
        "Keys whose versions are remembered, on the event loop that remembers most.")
    package static let versionKeysMax = own(
        "version_keys_max", .gauge, labels: [app],
        "Keys whose versions are remembered at most, on each event loop.")
    package static let versionDistance = own(
        "version_floor_distance", .gauge, labels: [app],
        "Log entries between the oldest version remembered and the last entry: who resumes from "
            + "further back rebuilds everything.")
    package static let cursorsAhead = own(
        "cursors_ahead", .counter,
        "Cursors that knew changes which the log does not: a lost tail, as after a restore "
            + "without a new epoch.")
    package static let commitSeconds = own(
        "store_commit_seconds", commits, unit: "seconds",
        "Duration of a transaction, sync included.")
    static let commitJobs = own(
        "store_commit_jobs", .histogram(bounds: [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000]),
        "Writes that shared a transaction.")
    package static let commitTotal = own("store_commits", .counter, "Transactions on disk.")
    package static let commitFailures = own(
        "store_commit_failures", .counter, "Transactions the disk refused.")
    package static let jobsRefused = own(
        "store_jobs_refused", .counter, "Writes refused because too many waited.")
    package static let jobsWaiting = own(
        "store_jobs_waiting", .gauge, "Writes waiting for the disk.")
    static let requestsRefused = own(
        "requests_refused", .counter, labels: [Label("reason", valuesMax: 8)],
        "Requests refused by a limit: the rate of an `address`, `app` or `client`, "
            + "`refused_tokens` of an address (429), or `bytes_in_work` (503).")
    package static let requestBytesInWork = own(
        "request_in_work_bytes", .gauge, unit: "bytes",
        "Bytes of request bodies being received or in work; at most "
            + "`limits.requestBytesInWork`.")
    package static let databaseBytes = own(
        "store_database_bytes", .gauge, unit: "bytes", "Size of the database.")
    package static let walBytes = own(
        "store_wal_bytes", .gauge, unit: "bytes", "Size of the write-ahead log.")

    // MARK: TLS and keys

    package static let handshakes = own(
        "tls_handshakes", .counter, labels: [Label("kind", valuesMax: 2)], "Handshakes done.")
    package static let handshakesFailed = own(
        "tls_handshakes_failed", .counter, labels: [Label("reason", valuesMax: 32)],
        "Handshakes that failed.")
    package static let connectionsRefused = own(
        "connections_refused", .counter, labels: [Label("reason", valuesMax: 4)],
        "Connections to the TLS port closed as soon as they were accepted: for `address`, their "
            + "source address had limits.connectionsPerAddress of them.")
    static let answersUnread = own(
        "answers_unread", .counter,
        "Answers given up because the client did not read them.")
    package static let tlsBytes = own(
        "tls_bytes", .counter, unit: "bytes", labels: [Label("path", valuesMax: 2)],
        "Ciphertext bytes sent.")
    package static let certificateEnds = own(
        "tls_certificate_not_after_seconds", .gauge, unit: "seconds",
        "When the server certificate expires, in seconds since 1970.")
    package static let pushCertificateEnds = own(
        "apns_certificate_not_after_seconds", .gauge, unit: "seconds", labels: [app],
        "When the certificate expires by which APNs knows an app, in seconds since 1970; of "
            + "several, the first one.")
    package static let signingKeyAge = own(
        "signing_key_age_seconds", .gauge, unit: "seconds",
        "How long the key that signs notifications has been the one.")

    // MARK: Threads

    static let turnCPU = own(
        "turn_cpu_seconds",
        .histogram(bounds: [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5]),
        unit: "seconds",
        labels: [Label("thread", valuesMax: SharedThread.allCases.count)],
        "CPU time of the turns of the threads that all apps share: of an `event_loop` one look at its "
            + "sockets with all that follows, of `push` the events that the loop of pushes takes "
            + "in one go, of `arrivals` one event of one new connection, of the "
            + "`writer` of the log the longest write of each transaction, of `requests` a request's "
            + "work between two waits. What may take longer than 5 ms, such as reading a large "
            + "document, has a thread of its own: `documents`, whose long turns delay other large "
            + "documents and nothing else.")

    // MARK: The process

    static let reloads = own(
        "configuration_reloads", .counter, labels: [Label("outcome", valuesMax: 3)],
        "Times the configuration was read again: `applied`, `unchanged`, or `refused` because "
            + "something in it is wrong.")
    package static let spans = own(
        "trace_spans", .counter, labels: [Label("outcome", valuesMax: 4)],
        "Spans that ended and were recorded: `exported` to the collector, `refused` by it, "
            + "`undelivered` because it was not there or too slow, `dropped` because too many "
            + "waited.")
    package static let build = own(
        "build", .info,
        labels: ["version", "swift", "openssl", "libcurl", "nghttp2", "sqlite"].map {
            Label($0, valuesMax: 1)
        }, "What runs.")
    package static let processCPU = MetricFamily(
        "process_cpu_seconds", .counter, unit: "seconds", "CPU time used.")
    package static let processStart = MetricFamily(
        "process_start_time_seconds", .gauge, unit: "seconds",
        "When the process started, in seconds since 1970.")
    package static let processResident = MetricFamily(
        "process_resident_memory_bytes", .gauge, unit: "bytes", "Memory in use.")
    package static let processVirtual = MetricFamily(
        "process_virtual_memory_bytes", .gauge, unit: "bytes", "Memory mapped.")
    package static let processFiles = MetricFamily(
        "process_open_fds", .gauge, "File descriptors open.")
    package static let processFilesMax = MetricFamily(
        "process_max_fds", .gauge, "File descriptors that may be open.")

    /// All metric families.
    package static let gateway: [MetricFamily] = [
        freshnessDecided, freshnessSent, freshnessConfirmed, oldestUnconfirmed, rebuildSeconds,
        changesAccepted, changesDuplicate, changesUnmatched, changesBroad, decisions, collapsed,
        clients, appClients, streams, streamsLagging, streamsOpened, streamsLagged, streamsStalled,
        streamsEnded,
        streamSeconds, deliveries, signatures, polls, acknowledgements, rebuildFailures,
        pushes, pushSeconds, pushStandings, pushEvents, providerTokenAge,
        logHead, logFloor, appLogBytes, shardPosition, versionKeys, versionKeysMax, versionDistance,
        cursorsAhead, commitSeconds, commitJobs, commitTotal, commitFailures, jobsRefused,
        jobsWaiting, requestsRefused, requestBytesInWork, databaseBytes, walBytes,
        handshakes, handshakesFailed, connectionsRefused, answersUnread, tlsBytes, certificateEnds,
        pushCertificateEnds,
        signingKeyAge, turnCPU,
        reloads, spans, build, processCPU, processStart, processResident, processVirtual,
        processFiles,
        processFilesMax,
    ]
}
