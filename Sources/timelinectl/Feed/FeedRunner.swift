import GatewayCluster
import TimelineRuntime
import WidgetModel

/// Posts the changes of a slot until a signal asks for the end.
struct FeedRunner {
    /// The time after which the server is sent a status, also while events are posted.
    private static let statusInterval = Duration.seconds(10)

    let address: PostgresAddress
    let mapping: FeedMapping
    let slot: String
    private var poster: EventPoster
    private var report: PostingReport

    init(
        address: PostgresAddress, mapping: FeedMapping, slot: String, form: OutputForm,
        service: GatewayService
    ) {
        (self.address, self.mapping, self.slot) = (address, mapping, slot)
        report = PostingReport(form: form)
        poster = EventPoster(service: service, until: report.interruption)
    }

    /// - Throws: An error that a person has to mend. Others pass: it connects again.
    mutating func run() async throws(PostgresError) {
        var attempt = 0
        while !report.isInterrupted {
            do throws(PostgresError) {
                let connection = try ReplicationConnection(address.servers(at: attempt))
                let database = try FeedDatabase(connection, publication: slot)
                for complaint in database.complaints(of: mapping) { report.complain(complaint) }
                try connection.start(slot: slot)
                try await follow(connection, LogicalFeed(mapping, database))
            } catch {
                guard !Self.isFinal(error) else { throw error }
                attempt += 1
                report.fail(Self.text(of: error, slot: slot))
                await report.pause(.seconds(1))
            }
        }
        report.figures.add(poster.takeFigures())
        report.print(isLast: true)
    }

    /// Whether the slot or the publication is missing, was given up, or may not be used.
    static func isFinal(_ error: PostgresError) -> Bool {
        switch error {
        case .schema: true
        case .other(let state, _): ["42704", "55000"].contains(state)
        // A refused connection has only a text. Servers in other languages are tried again.
        case .connectionLost(let reason):
            reason.contains("start walsender") || reason.contains("start WAL sender")
        case .fenced, .deadline, .warned, .unexpectedAnswer: false
        }
    }

    static func text(of error: PostgresError, slot: String) -> String {
        // The error's own advice is for the database of a cluster.
        switch error {
        case .schema,
            .connectionLost where isFinal(error):
            "database: the login may not read a slot: ALTER ROLE … REPLICATION; on Amazon RDS: "
                + "GRANT rds_replication TO …"
        case _ where isFinal(error):
            "database: \(error). If the slot \(slot) is that of another database or app, choose "
                + "another --slot. Otherwise, if there is one: SELECT pg_drop_replication_slot("
                + "'\(slot)'). Then run what `timelinectl feed init` prints, and `timelinectl reload "
                + "--all`, as changes meanwhile are lost"
        default: "database: \(error)"
        }
    }

    private mutating func follow(
        _ connection: ReplicationConnection, _ feed: LogicalFeed
    ) async throws(PostgresError) {
        var feed = feed
        var (confirmed, confirmedAt) = (UInt64(0), ContinuousClock.now)
        while !report.isInterrupted {
            let wantsReply = try read(from: connection, into: &feed)
            while !feed.events.isEmpty, !report.isInterrupted {
                if let (failure, wait) = await poster.post(&feed.events) {
                    report.fail(Terminal.line(of: failure))
                    try await pause(wait, connection, confirmed)
                } else if ContinuousClock.now >= confirmedAt + Self.statusInterval {
                    try connection.confirm(confirmed)
                    confirmedAt = .now
                }
            }
            report.figures.add(poster.takeFigures())
            report.print()
            guard feed.events.isEmpty else { return }
            if feed.position > confirmed || wantsReply
                || ContinuousClock.now >= confirmedAt + Self.statusInterval
            {
                confirmed = feed.position
                try connection.confirm(confirmed)
                confirmedAt = .now
            }
        }
    }

    /// Reads messages for a batch, until none is there, and not for long: many may concern no
    /// mapped table.
    ///
    /// - Returns: Whether the server asks for a status.
    private mutating func read(
        from connection: ReplicationConnection, into feed: inout LogicalFeed
    ) throws(PostgresError) -> Bool {
        var wait: Int64 = 1_000
        let end = ContinuousClock.now + .seconds(1)
        while ContinuousClock.now < end, feed.events.count < Limits().postEventsMax,
            let bytes = try connection.next(within: wait)
        {
            let message = try ReplicationMessage(bytes)
            for complaint in try feed.receive(message) { report.complain(complaint) }
            if case .keepalive(position: _, wantsReply: true) = message { return true }
            wait = 0
        }
        return false
    }

    private func pause(
        _ duration: Duration, _ connection: ReplicationConnection, _ confirmed: UInt64
    ) async throws(PostgresError) {
        let end = ContinuousClock.now + duration
        while !report.isInterrupted, ContinuousClock.now < end {
            await report.pause(min(Self.statusInterval, end - ContinuousClock.now))
            try connection.confirm(confirmed)
        }
    }
}
