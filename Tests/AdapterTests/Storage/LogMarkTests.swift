import Foundation
import Testing

@testable import GatewayStorage

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
