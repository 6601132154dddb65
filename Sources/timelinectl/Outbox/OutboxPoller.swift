import Foundation
import GatewayCluster
import GatewayDocuments
import TimelineRuntime
import WidgetModel

/// Posts the rows of an outbox until a signal asks for the end.
struct OutboxPoller {
    let address: PostgresAddress
    let form: OutputForm
    let service: GatewayService
    private let interruption = Interruption()
    private var batch = OutboxBatch()
    private var figures = Figures()
    private var reported: ContinuousClock.Instant?
    private var complained: ContinuousClock.Instant?

    init(address: PostgresAddress, form: OutputForm, service: GatewayService) {
        (self.address, self.form, self.service) = (address, form, service)
    }

    /// - Throws: `PostgresError.schema` where there is no outbox. Other errors pass: it connects
    ///   again.
    mutating func run() async throws(PostgresError) {
        var attempt = 0
        while !interruption.hasCome {
            do throws(PostgresError) {
                try await post(OutboxTable(address, attempt: attempt))
            } catch {
                if case .schema = error { throw error }
                attempt += 1
                fail(OutboxCommand.text(of: error))
                await pause(.seconds(1))
            }
        }
        report(isLast: true)
    }

    /// Posts batches, each in one transaction: no other poller posts the rows that it locks, unless
    /// it ends without its commit.
    private mutating func post(_ table: OutboxTable) async throws(PostgresError) {
        while !interruption.hasCome {
            let rows = try table.lock(batch.size)
            guard !rows.isEmpty else {
                try table.awaitRows()
                report()
                continue
            }
            var failure: GatewayFailure?
            do throws(GatewayFailure) {
                figures.count(try await service.post(rows.map(\.event)))
            } catch {
                failure = error
            }
            switch batch.decide(
                count: rows.count, failure: failure, random: .random(in: 0...1))
            {
            case .remove: try table.remove(rows)
            case .setAside(let reasons):
                try table.setAside(rows, reasons)
                figures.setAside += reasons.count
            case .split: try table.release()
            case .retry(let wait):
                try table.release()
                if let failure { fail(Terminal.line(of: failure)) }
                await pause(wait)
            }
            report()
        }
    }

    /// Waits, in parts: the end may be asked for meanwhile.
    private func pause(_ duration: Duration) async {
        let end = ContinuousClock.now + duration
        while !interruption.hasCome, ContinuousClock.now < end {
            let next = min(end, ContinuousClock.now + .milliseconds(200))
            try? await Task.sleep(until: next, clock: .continuous)
        }
    }

    // MARK: Lines

    private static func isDue(after last: ContinuousClock.Instant?) -> Bool {
        last.map { ContinuousClock.now >= $0 + .seconds(60) } ?? true
    }

    private mutating func fail(_ text: String) {
        guard Self.isDue(after: complained) else { return }
        complained = .now
        Terminal.complain("timelinectl: \(text); it is tried again")
    }

    private mutating func report(isLast: Bool = false) {
        guard !figures.isEmpty, isLast || Self.isDue(after: reported) else { return }
        let due = figures
        figures = Figures()
        reported = .now
        Terminal.print((try? JSONValue(encoding: due)) ?? .null, as: form) {
            "\(Date().ISO8601Format())  accepted \(due.accepted), \(due.duplicates) duplicates, "
                + "\(due.unmatched) matched no rule, \(due.setAside) set aside"
        }
    }

    /// The numbers of events that were posted since the last line.
    private struct Figures: Encodable {
        var accepted = 0
        var duplicates = 0
        var unmatched = 0
        var setAside = 0

        var isEmpty: Bool { accepted + duplicates + setAside == 0 }

        mutating func count(_ taken: ChangesTaken) {
            accepted += taken.accepted
            duplicates += taken.duplicates
            unmatched += taken.unmatched
        }
    }
}
