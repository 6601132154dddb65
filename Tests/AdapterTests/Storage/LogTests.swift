import Foundation
import GRDB
import Testing

@testable import GatewayStorage

@Suite struct LogTests {
    @Test func sequencesStartAtOneAndHaveNoGapsAcrossReopening() async throws {
        let directory = try TemporaryDirectory()
        for round in 0..<3 {
            let store = try SQLiteStore(directory: directory.path)
            #expect(store.head == UInt64(round * 4))
            for _ in 0..<4 { try await store.appendChange() }
            try await store.close()
        }
        let store = try SQLiteStore(directory: directory.path)
        #expect(try store.rows().map(\.sequence) == Array(1...12))
        try await store.close()
    }

    @Test func rowsComeBackAsTheyWereAppended() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        let wide = Data((0...255).map { UInt8($0) })
        _ = try await store.write(cost: 1) { transaction in
            try transaction.append(
                app: "a", type: .change, source: "s", eventID: "é\"'", acceptedAt: -5,
                payload: wide)
            try transaction.append(
                app: "b", type: .reload, source: nil, eventID: nil, acceptedAt: .max,
                payload: Data())
            try transaction.append(
                app: "b", type: .start, source: "", eventID: "1", acceptedAt: 1, payload: wide)
        }
        let rows = try store.rows()
        #expect(
            rows == [
                LogRow(
                    sequence: 1, app: "a", type: .change, source: "s", eventID: "é\"'",
                    acceptedAt: -5, payload: wide),
                LogRow(
                    sequence: 2, app: "b", type: .reload, source: nil, eventID: nil,
                    acceptedAt: .max, payload: Data()),
                LogRow(
                    sequence: 3, app: "b", type: .start, source: "", eventID: "1",
                    acceptedAt: 1, payload: wide),
            ])
        // An empty source is another one than none, and than any other.
        let found = try await store.write(cost: 0) { transaction in
            try ["", "s"].map { try transaction.event(app: "b", source: $0, id: "1")?.sequence }
        }.value
        #expect(found == [3, nil])
    }

    @Test func replayIsBoundedByRowsAndBytesAndStartsAfterACursor() async throws {
        var configuration = StoreConfiguration()
        configuration.batchBytesMax = 250
        let store = try SQLiteStore(inMemory: configuration)
        for _ in 0..<10 { try await store.appendChange(payload: Data(count: 100)) }
        var sizes: [Int] = []
        try store.replay(after: 2, batch: 5) { sizes.append($0.count) }
        #expect(sizes == [3, 3, 2])
        sizes = []
        try store.replay(after: 8, batch: 1) { sizes.append($0.count) }
        #expect(sizes == [1, 1])
        try store.replay(after: .max, batch: 1) { _ in Issue.record("nothing is after the end") }
    }

    @Test func theLogIsReadFromAnyPlace() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        _ = try await store.write(cost: 1) { transaction in
            for number in 1...6 {
                try transaction.append(
                    app: number.isMultiple(of: 2) ? "b" : "a",
                    type: number == 3 ? .reload : .change,
                    source: nil, eventID: nil, acceptedAt: Int64(number * 10), payload: Data())
            }
        }
        #expect(try await store.logRow(4)?.app == "b")
        #expect(try await store.logRow(7) == nil)
        let page = try await store.changes(app: "a", before: 7, limit: 1, scanMax: 100)
        #expect(page.rows.map(\.sequence) == [5] && page.next == 5)
        let rest = try await store.changes(app: "a", before: 5, limit: 2, scanMax: 100)
        #expect(rest.rows.map(\.sequence) == [1] && rest.next == nil)
        let scanned = try await store.changes(app: "b", before: .max, limit: 9, scanMax: 4)
        #expect(scanned.rows.map(\.sequence) == [6, 4] && scanned.next == 3)
        #expect(
            try await store.log(after: 2, through: 5, limit: 2).map(\.sequence) == [3, 4])
        for (moment, last) in [(Int64(0), UInt64(0)), (10, 0), (11, 1), (35, 3), (61, 6)] {
            #expect(try await store.lastSequence(acceptedBefore: moment) == last)
        }
    }

    @Test func replayRefusesALogWithAGap() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        for _ in 0..<5 { try await store.appendChange() }
        try await store.database.write { try $0.execute(sql: "DELETE FROM log WHERE sequence = 3") }
        #expect(throws: StoreError.corrupt(reason: "the log has a gap after 2")) {
            try store.rows()
        }
    }

    @Test func anEventIsFoundByItsAppSourceAndId() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        try await store.appendChange(app: "one", eventID: "e1", payload: Data("first".utf8))
        try await store.appendChange(app: "two", eventID: "e1", payload: Data("second".utf8))
        let found = try await store.write(cost: 0) { transaction in
            [
                try transaction.event(app: "one", source: "players", id: "e1")?.sequence,
                try transaction.event(app: "two", source: "players", id: "e1")?.sequence,
                try transaction.event(app: "one", source: "other", id: "e1")?.sequence,
                try transaction.event(app: "one", source: "players", id: "e2")?.sequence,
            ]
        }.value
        #expect(found == [1, 2, nil, nil])
        let payload = try await store.write(cost: 0) {
            try $0.event(app: "two", source: "players", id: "e1")?.payload
        }.value
        #expect(payload == Data("second".utf8))
    }

    @Test(arguments: [false, true])
    func anEventIsNeverAppendedTwice(looksFirst: Bool) async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        let rejected = StoreError.rejected(reason: "the log already contains this event")
        await #expect(throws: rejected) {
            try await store.write(cost: 1) { transaction in
                for _ in 0..<2 {
                    if looksFirst {
                        _ = try transaction.event(app: "a", source: "s", id: "e")
                        _ = try transaction.event(app: "a", source: "s", id: "e")
                    }
                    try transaction.append(
                        app: "a", type: .change, source: "s", eventID: "e", acceptedAt: 1,
                        payload: Data())
                }
            }
        }
        try await store.appendChange(eventID: "e")
        await #expect(throws: rejected) { try await store.appendChange(eventID: "e") }
        #expect(store.head == 1)
    }

    /// The embedded database would return such a text cut short.
    @Test func textWithANulIsRejected() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        let rejected = StoreError.rejected(reason: "a text holds a NUL")
        await #expect(throws: rejected) { try await store.appendChange(eventID: "a\u{0}b") }
        await #expect(throws: rejected) { try await store.appendChange(app: "a\u{0}b") }
        for attributes in [["n": ["v", "a\u{0}b"]], ["a\u{0}b": ["v"]]] {
            await #expect(throws: rejected) {
                try await store.write(cost: 0) {
                    try $0.putRegistration(
                        app: "a", client: "c", payload: Data(), attributes: attributes,
                        updatedAt: 1)
                }
            }
        }
        #expect(store.head == 0)
    }

    @Test func eventsWithTheSameFingerprintAreToldApart() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        try await store.appendChange(eventID: "e1")
        try await store.appendChange(eventID: "e2")
        try await store.database.write { db in
            try db.execute(
                sql: "UPDATE log SET event_key = (SELECT event_key FROM log WHERE sequence = 2)")
        }
        let found = try await store.write(cost: 0) {
            try $0.event(app: "com.mygame", source: "players", id: "e2")?.sequence
        }.value
        #expect(found == 2)
    }

    @Test func metaValuesAreStoredReplacedAndRemoved() async throws {
        let store = try SQLiteStore(inMemory: StoreConfiguration())
        let seen = try await store.write(cost: 0) { transaction in
            var seen = [try transaction.meta("k")]
            try transaction.setMeta("k", Data([1]))
            seen.append(try transaction.meta("k"))
            try transaction.setMeta("k", Data())
            seen.append(try transaction.meta("k"))
            try transaction.setMeta("k", nil)
            seen.append(try transaction.meta("k"))
            return seen
        }.value
        #expect(seen == [nil, Data([1]), Data(), nil])
    }

    @Test func aFingerprintNeedsAWholeKey() throws {
        #expect(throws: StoreError.self) { try EventFingerprint(key: Data(0..<15)) }
    }
}

@Suite struct LogMarkTests {
    private let content = LogMark.Content(log: 7, inode: 5, born: 9, head: 100)

    private func loss(
        _ content: LogMark.Content?, inode: UInt64 = 5, born: Int64 = 9, head: UInt64 = 100
    ) -> SuspectedLoss? {
        LogMark.suspectedLoss(content, inode: inode, born: born, log: 7, head: head)
    }

    @Test func `a mark of this file and this log shows no loss`() {
        #expect(loss(content) == nil)
        #expect(loss(content, head: 101) == nil)
        // Another mount assigns other inode numbers.
        #expect(loss(content, inode: 6) == nil)
    }

    @Test func `a log that ends before its mark has lost its end`() {
        #expect(loss(content, head: 99) == .shortened(marked: 100, head: 99))
    }

    @Test func `a mark in another file, of another log, or none is a copy`() {
        #expect(loss(content, born: 10) == .copied)
        #expect(loss(content, inode: 6, born: 0) == .copied)
        #expect(loss(LogMark.Content(log: 8, inode: 5, born: 9, head: 100)) == .copied)
        #expect(loss(nil) == .copied)
    }

    @Test func `a torn record leaves the other one`() {
        var later = content
        later.head = 200
        let whole = LogMark.record(content) + LogMark.record(later)
        #expect(whole.count == 1_024)
        #expect(LogMark.read(whole) == later)
        for length in 0..<512 {
            var torn = whole
            torn.replaceSubrange(
                512 + length..<1_024, with: Array(repeating: 0, count: 512 - length))
            let read = LogMark.read(torn)
            #expect(read == content || read == later, "torn after \(length)")
        }
        #expect(LogMark.read(Array(repeating: 0, count: 1_024)) == nil)
        #expect(LogMark.read([UInt8]()) == nil)
    }

    @Test func `a directory is known again, and its copy is not`() async throws {
        let directory = try TemporaryDirectory()
        var store = try SQLiteStore(directory: directory.path)
        #expect(try store.suspectedLoss() == nil)
        try store.renewMark()
        for _ in 0..<3 { try await store.appendChange() }
        try await store.close()
        store = try SQLiteStore(directory: directory.path)
        #expect(try store.suspectedLoss() == nil)
        try await store.close()

        let copy = directory.path + "-copy"
        defer { try? FileManager.default.removeItem(atPath: copy) }
        try FileManager.default.copyItem(atPath: directory.path, toPath: copy)
        store = try SQLiteStore(directory: copy)
        #expect(try store.suspectedLoss() == .copied)
        try store.renewMark()
        #expect(try store.suspectedLoss() == nil)
        try await store.close()
    }

    @Test func `an older database beside a newer mark is seen`() async throws {
        let directory = try TemporaryDirectory()
        let file = directory.path + "/store.sqlite"
        var store = try SQLiteStore(directory: directory.path)
        try store.renewMark()
        try await store.appendChange()
        try await store.close()
        let old = try Data(contentsOf: URL(fileURLWithPath: file))
        store = try SQLiteStore(directory: directory.path)
        try store.renewMark()
        for _ in 0..<3 { try await store.appendChange() }
        try await store.close()
        try old.write(to: URL(fileURLWithPath: file))
        store = try SQLiteStore(directory: directory.path)
        #expect(try store.suspectedLoss() == .shortened(marked: 4, head: 1))
        try await store.close()
    }
}
