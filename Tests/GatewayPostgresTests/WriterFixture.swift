import Foundation
import GatewayPostgres
import GatewayTestSupport
import Synchronization

/// A node's writer on a thread of its own, with what it answered and said of itself.
final class WriterFixture: Sendable {
    private let loop: PostgresLoop
    let writer: PostgresWriter
    private let statuses = TestHTTPMonitor<[PostgresWriter.Status]>([])

    init(
        _ address: PostgresAddress, _ requirement: Durability.Requirement = .primary,
        from position: LogPosition? = nil, deadline: Int64 = Int64(Patience.milliseconds)
    ) throws {
        loop = try PostgresLoop(name: "writer")
        var limits = BatchLimits()
        limits.deadline = deadline
        let statuses = statuses
        writer = PostgresWriter(address, requirement, from: position, limits: limits, on: loop) {
            status in statuses.update { $0.append(status) }
        }
    }

    deinit { loop.end() }

    /// The present status; `nil` before the first.
    var status: PostgresWriter.Status? { statuses.update { $0.last } }

    /// Waits for a status.
    func wait(for matches: (PostgresWriter.Status) -> Bool) throws {
        guard
            statuses.wait(
                seconds: Patience.seconds, { $0.last.map(matches) == true ? true : nil }) != nil
        else {
            throw TestFailure("the status stays \(status.map { "\($0)" } ?? "unknown")")
        }
    }

    func waitUntilReady() throws { try wait { if case .ready = $0 { true } else { false } } }

    /// Appends changes and waits for the outcome.
    func append(_ changes: LogWrite.Change...) throws -> WriteOutcome {
        try write(.changes(changes))
    }

    /// Appends a change, which has a key, also again, until it is accepted.
    func appendUntilAccepted(_ change: LogWrite.Change) throws {
        try blockUntil("accepted") {
            if case .accepted = try append(change) { true } else { false }
        }
    }

    /// Appends a write and waits for the outcome.
    func write(
        _ content: LogWrite.Content, app: String = "app", removal: Int64 = 0
    ) throws -> WriteOutcome {
        let answer = TestHTTPMonitor<WriteOutcome?>(nil)
        writer.append(content, app: app, removal: removal) { outcome in
            answer.update { $0 = outcome }
        }
        guard let outcome = answer.wait(seconds: Patience.seconds, { $0 }) else {
            throw TestFailure("no outcome")
        }
        return outcome
    }

    /// Reads rows and waits for the outcome.
    func read(_ reading: RowReading) throws -> RowOutcome {
        let answer = TestHTTPMonitor<RowOutcome?>(nil)
        writer.read(reading) { outcome in answer.update { $0 = outcome } }
        guard let outcome = answer.wait(seconds: Patience.seconds, { $0 }) else {
            throw TestFailure("nothing read")
        }
        return outcome
    }

    /// Reads one row; `nil` if there is none.
    func row(_ key: RegistrationKey) throws -> RegistrationRow? {
        let outcome = try read(.rows([key], asOf: 0))
        guard case .rows(let rows, _) = outcome else { throw TestFailure("\(outcome)") }
        return rows[key]
    }
}

extension WriteOutcome {
    /// Whether the write was not confirmed in time: unknown if it was on its way at its deadline, else
    /// refused.
    var isOpen: Bool { self == .unknown || self == .refused(.unavailable) }
}

extension LogWrite.Change {
    /// A change whose payload of 16 bytes is found again in the log.
    init(_ number: UInt64, of node: UInt64 = 0, key: UInt128? = nil, digest: Int64 = 1) {
        self.init(key: key, digest: digest, record: LogRecord(number: number, of: node).encoded)
    }
}

extension LogRecord {
    /// A change with a payload of 16 bytes.
    init(number: UInt64, of node: UInt64 = 0) {
        let payload =
            (0..<8).map { UInt8(truncatingIfNeeded: node >> (8 * $0)) }
            + (0..<8).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
        self.init(app: "app", .change(event: nil, payload: payload))
    }
}

/// An independent record of every post that was accepted, and its judgement of a log.
final class AcceptedPosts: Sendable {
    private let records = TestHTTPMonitor<[Int64: [UInt8]]>([:])
    private let isStopped = Mutex(false)

    /// The number of accepted changes.
    var count: Int { records.update { $0.count } }

    /// Posts one change after the other in `width` threads, until ``stop()``; returns at once.
    func load(_ fixture: WriterFixture, node: UInt64, width: Int = 4) {
        for thread in 0..<width {
            onThread {
                var number = UInt64(thread)
                while !self.isStopped.withLock({ $0 }) {
                    let change = LogWrite.Change(
                        number, of: node, key: UInt128(node) << 64 | UInt128(number))
                    if case .accepted(let places) = try? fixture.append(change) {
                        self.record(change, places)
                        number += UInt64(width)
                    }
                }
            }
        }
    }

    private func record(_ change: LogWrite.Change, _ places: [WriteOutcome.Place]) {
        // A repetition after an unknown outcome is answered as a duplicate.
        switch places.first {
        case .appended(let sequence), .duplicate(let sequence):
            records.update { $0[sequence] = change.record }
        case nil: break
        }
    }

    func stop() { isStopped.withLock { $0 = true } }

    /// Waits until `count` changes more than now are accepted.
    func wait(forMore count: Int) throws {
        let target = self.count + count
        guard records.wait(seconds: Patience.seconds, { $0.count >= target ? true : nil }) != nil
        else {
            throw TestFailure("only \(self.count) of \(target) changes were accepted")
        }
    }

    /// Returns what is wrong with the log of a server: gaps, records twice, accepted ones lost.
    func faults(in server: PostgresAdministration) throws -> [String] {
        // Read before the log, to which more is appended meanwhile.
        let accepted = records.update { $0 }
        var faults: [String] = []
        var written: [Int64: [UInt8]] = [:]
        var head: Int64?
        let rows = try server.rows(
            "SELECT first, last, body FROM tg.log WHERE last > 0 ORDER BY last")
        for row in rows {
            let first = try row.integer(0)
            let records = try LogRecord.records(in: try row.bytes(2))
            if let head, first != head + 1 { faults.append("a gap at \(head)") }
            head = try row.integer(1)
            for (index, record) in records.enumerated() {
                written[first + Int64(index)] = record.encoded
            }
            if first + Int64(records.count) - 1 != head { faults.append("a count at \(first)") }
        }
        if Set(written.values).count != written.count { faults.append("a record is there twice") }
        let lost = accepted.filter { written[$0.key] != $0.value }
        if !lost.isEmpty { faults.append("\(lost.count) accepted changes are lost") }
        return faults
    }
}
