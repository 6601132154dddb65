import Foundation
import GatewayStorage
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayFleet
@testable import GatewayPostgres

/// The listings of the log over readings of any size, without a server.
@Suite struct LogScanTests {
    /// A log of batches with records of several apps.
    private struct Log {
        private(set) var batches: [StoredBatch] = []
        private(set) var rows: [LogRow] = []
        private(set) var head: UInt64 = 0

        mutating func append(_ records: [LogRecord]) {
            let position = LogPosition(last: Int64(head) + Int64(records.count), chain: 1)
            let batch = StoredBatch(
                head: BatchHead(first: Int64(head) + 1, position: position, at: Int64(head)),
                body: records.flatMap(\.encoded))
            batches.append(batch)
            for (index, record) in records.enumerated() {
                let row = LogRow(
                    record, at: head + 1 + UInt64(index), acceptedAt: Int64(head))
                if let row { rows.append(row) }
            }
            head += UInt64(records.count)
        }

        /// Answers as the server does, with at most `portion` batches.
        func read(_ range: BatchRange, portion: Int, above floor: Int64 = 0) -> [StoredBatch] {
            let found = batches.filter {
                $0.head.position.last >= range.first && $0.head.first <= range.last
                    && $0.head.position.last > floor
            }
            return Array(
                range.direction == .forwards
                    ? found.prefix(portion) : found.reversed().prefix(portion))
        }
    }

    private static func change(_ app: String, bytes: Int = 3) -> LogRecord {
        LogRecord(
            app: app,
            .change(
                event: .init(source: "s", id: "i"), payload: [UInt8](repeating: 7, count: bytes)))
    }

    private static func random(batches: Int, using random: inout SplitMix64) -> Log {
        var log = Log()
        for _ in 0..<batches {
            log.append(
                (0...random.below(5)).map { _ in
                    let app = "app \(random.below(3))"
                    return switch random.below(6) {
                    case 0: LogRecord(app: app, .addressesLost(part: 1, client: "c"))
                    case 1: LogRecord(app: app, .reload(scope: [1]))
                    default: change(app)
                    }
                })
        }
        return log
    }

    private func list(
        _ log: Log, after: UInt64, through last: UInt64, limit: Int, portion: Int
    ) throws -> [LogRow] {
        var scan = LogScan(after: after, through: last, limit: limit)
        var readings = 0
        while let range = scan.range {
            readings += 1
            try #require(readings < 1_000)
            try scan.receive(log.read(range, portion: portion))
        }
        return scan.rows
    }

    private func list(
        _ log: Log, app: String, before: UInt64, after: UInt64, limit: Int, portion: Int,
        floor: Int64 = 0
    ) throws -> (rows: [LogRow], next: UInt64?) {
        var scan = ChangeScan(
            app: app, before: before, after: after, head: log.head, limit: limit)
        var readings = 0
        while let range = scan.range {
            readings += 1
            try #require(readings < 1_000)
            try scan.receive(log.read(range, portion: portion, above: floor), floor: floor)
        }
        return (scan.rows, scan.next)
    }

    @Test(arguments: 0..<40)
    func `listings have exactly the rows of their range`(_ seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let log = Self.random(batches: 40, using: &random)
        for _ in 0..<40 {
            let bounds = [random.below(Int(log.head) + 3), random.below(Int(log.head) + 3)]
                .map { UInt64($0) }.sorted()
            let (limit, portion) = (1 + random.below(20), 1 + random.below(5))
            let (low, high) = (bounds[0], bounds[1])
            let expected = log.rows.filter { $0.sequence > low && $0.sequence <= high }
            let listed = try list(
                log, after: low, through: high, limit: limit, portion: portion)
            #expect(listed == Array(expected.prefix(limit)))

            let floor = random.below(2) == 0 ? 0 : Int64(random.below(Int(log.head)))
            let lowest = max(low, UInt64(floor))
            let changes = log.rows.filter { row in
                guard row.sequence > lowest, row.sequence < high else { return false }
                return row.app == "app 1" && row.type == .change
            }
            var found: [LogRow] = []
            var before = high
            while true {
                let page = try list(
                    log, app: "app 1", before: before, after: low, limit: limit,
                    portion: portion, floor: floor)
                #expect(page.rows.count <= limit)
                found += page.rows
                guard let next = page.next else { break }
                try #require(next < before)
                before = next
            }
            #expect(found == changes.reversed())
        }
    }

    @Test func `a page is cut by its bytes and the next one goes on`() throws {
        var log = Log()
        for _ in 0..<3 { log.append([3, 3, 3].map { Self.change("a", bytes: $0 << 20) }) }
        let page = try list(log, after: 0, through: 9, limit: 100, portion: 1)
        #expect(page.map(\.sequence) == [1, 2, 3])
        let changes = try list(log, app: "a", before: 10, after: 0, limit: 100, portion: 2)
        #expect(changes.rows.map(\.sequence) == [9, 8, 7] && changes.next == 7)
        let last = try list(log, app: "a", before: 4, after: 0, limit: 100, portion: 2)
        #expect(last.rows.count == 3 && last.next == nil)
        // One row is in every page, however large.
        log.append([Self.change("a", bytes: 9 << 20), Self.change("a")])
        #expect(try list(log, after: 9, through: 11, limit: 9, portion: 1).map(\.sequence) == [10])
    }

    @Test func `a listing without finds ends after as much as it may look at`() throws {
        var log = Log()
        for _ in 0..<1_100 { log.append((0..<50).map { _ in Self.change("a", bytes: 1) }) }
        let page = try list(log, app: "b", before: .max, after: 0, limit: 5, portion: 1_000)
        #expect(page.rows == [] && page.next == log.head + 1 - 50_000)
        let rest = try list(
            log, app: "b", before: page.next ?? 0, after: 0, limit: 5, portion: 1_000)
        #expect(rest.rows == [] && rest.next == nil)
        var large = Log()
        for _ in 0..<9 { large.append([Self.change("a", bytes: 8 << 20)]) }
        let cut = try list(large, app: "b", before: 10, after: 0, limit: 5, portion: 1)
        #expect(cut.rows == [] && cut.next == 6)
    }

    @Test func `a log that lost its beginning ends there`() throws {
        var log = Log()
        for _ in 0..<20 { log.append([Self.change("a")]) }
        // The node does not know the floor yet.
        var scan = ChangeScan(app: "a", before: 30, after: 0, head: 20, limit: 100)
        while let range = scan.range {
            try scan.receive(log.read(range, portion: 3, above: 12), floor: 0)
        }
        #expect(scan.rows.map(\.sequence) == (13...20).reversed() && scan.next == nil)
    }

    @Test func `a damaged batch ends a listing`() {
        let head = BatchHead(first: 1, position: LogPosition(last: 2, chain: 1), at: 0)
        var scan = LogScan(after: 0, through: 9, limit: 5)
        for body in [[1, 2], Self.change("a").encoded] {
            #expect(throws: PostgresError.unreadableRecord(.damaged, batch: 2)) {
                try scan.receive([StoredBatch(head: head, body: body)])
            }
        }
    }
}
