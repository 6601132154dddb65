import GatewayCluster
import TimelineRuntime

/// Posts the rows of an outbox until a signal asks for the end.
struct OutboxPoller {
    let address: PostgresAddress
    let service: GatewayService
    private var batch = EventBatch()
    private var report: PostingReport

    init(address: PostgresAddress, form: OutputForm, service: GatewayService) {
        (self.address, self.service) = (address, service)
        report = PostingReport(form: form)
    }

    /// - Throws: `PostgresError.schema` where there is no outbox. Other errors pass: it connects
    ///   again.
    mutating func run() async throws(PostgresError) {
        var attempt = 0
        while !report.isInterrupted {
            do throws(PostgresError) {
                try await post(OutboxTable(address, attempt: attempt))
            } catch {
                if case .schema = error { throw error }
                attempt += 1
                report.fail(OutboxCommand.text(of: error))
                await report.pause(.seconds(1))
            }
        }
        report.print(isLast: true)
    }

    /// Posts batches, each in one transaction: no other poller posts the rows that it locks, unless
    /// it ends without its commit.
    private mutating func post(_ table: OutboxTable) async throws(PostgresError) {
        while !report.isInterrupted {
            let rows = try table.lock(batch.size)
            guard !rows.isEmpty else {
                try table.awaitRows()
                report.print()
                continue
            }
            var failure: GatewayFailure?
            do throws(GatewayFailure) {
                let interruption = report.interruption
                report.figures.count(
                    try await service.post(rows.map(\.event)) { interruption.hasCome })
            } catch {
                failure = error
            }
            switch batch.decide(
                count: rows.count, failure: failure, random: .random(in: 0...1))
            {
            case .remove: try table.remove(rows)
            case .setAside(let reasons):
                try table.setAside(rows, reasons)
                report.figures.setAside += reasons.count
            case .split: try table.release()
            case .retry(let wait):
                try table.release()
                if let failure { report.fail(Terminal.line(of: failure)) }
                await report.pause(wait)
            }
            report.print()
        }
    }
}
