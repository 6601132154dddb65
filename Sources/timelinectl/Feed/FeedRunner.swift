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
        poster = EventPoster(service: service)
        report = PostingReport(form: form)
    }

    /// - Throws: An error that a person has to mend. Others pass: it connects again.
    mutating func run() async throws(PostgresError) {
        var attempt = 0
        while !report.isInterrupted {
            do throws(PostgresError) {
                try await follow(
                    ReplicationConnection(address.servers(at: attempt), slot: slot))
            } catch {
                guard !Self.isFinal(error) else { throw error }
                attempt += 1
                report.fail(Self.text(of: error))
                await report.pause(.seconds(1))
            }
        }
        report.figures.add(poster.takeFigures())
        report.print(isLast: true)
    }

    /// Whether the slot or the publication is missing, was given up, or may not be used.
    private static func isFinal(_ error: PostgresError) -> Bool {
        switch error {
        case .schema: true
        case .other(let state, _): ["42704", "55000"].contains(state)
        case .fenced, .connectionLost, .deadline, .warned, .unexpectedAnswer: false
        }
    }

    static func text(of error: PostgresError) -> String {
        // The error's own advice is for the database of a cluster.
        switch error {
        case .schema: "database: the login may not read the slot: ALTER ROLE … REPLICATION"
        case _ where isFinal(error):
            "database: \(error); run what `timelinectl feed init` prints. If the slot is new, "
                + "changes since the last one are lost: `timelinectl reload --all`"
        default: "database: \(error)"
        }
    }

    private mutating func follow(
        _ connection: ReplicationConnection
    ) async throws(PostgresError) {
        var feed = LogicalFeed(mapping)
        var (confirmed, confirmedAt) = (UInt64(0), ContinuousClock.now)
        while !report.isInterrupted {
            let wantsReply = try Self.read(from: connection, into: &feed)
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
    private static func read(
        from connection: ReplicationConnection, into feed: inout LogicalFeed
    ) throws(PostgresError) -> Bool {
        var wait: Int64 = 1_000
        let end = ContinuousClock.now + .seconds(1)
        while ContinuousClock.now < end, feed.events.count < Limits().postEventsMax,
            let bytes = try connection.next(within: wait)
        {
            let message = try ReplicationMessage(bytes)
            for complaint in try feed.receive(message) {
                Terminal.complain("timelinectl: \(complaint)")
            }
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
