import Foundation
import GRDB
import GatewayTestSupport
import Testing

@testable import GatewayStorage

@Suite struct StoreCopyTests {
    @Test func `a copy made while others write holds everything up to one moment`() async throws {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(directory: directory.path)
        for _ in 0..<600 {
            try await store.appendChange(payload: Data(repeating: 7, count: 20_000))
        }
        let before = store.head
        let writing = Task {
            var payload = Data(repeating: 1, count: 20_000)
            while !Task.isCancelled {
                payload[0] &+= 1
                try await store.appendChange(payload: payload)
            }
        }
        let path = directory.path + "/copy.sqlite"
        let steps = Recorder<Int64>()
        // Each step waits for the writer to continue: a copy that started again with each write, as
        // one without a transaction does, would never end.
        try StoreCopy.make(of: directory.path, to: path) { done, _ in
            steps.record(done)
            let head = store.head
            #expect(throws: Never.self) { try blockUntil("a write ends") { store.head != head } }
        }
        let after = store.head
        writing.cancel()
        _ = try? await writing.value
        try await store.close()

        let copy = try StoreCopy(checking: path)
        #expect(steps.values.count > 1)
        #expect(steps.values == steps.values.sorted())
        #expect(copy.head >= before)
        #expect(copy.head < after)
        let restored = try TemporaryDirectory()
        try FileManager.default.moveItem(
            atPath: path, toPath: restored.path + "/" + StoreCopy.fileName)
        let reopened = try SQLiteStore(directory: restored.path)
        #expect(try reopened.rows().map(\.sequence) == Array(1...copy.head))
        #expect(reopened.secret == store.secret)
        try await reopened.close()
    }

    @Test func `a copy needs no other file, and few may read it`() async throws {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(directory: directory.path)
        try await store.appendChange()
        let copies = directory.path + "/copies"
        try FileManager.default.createDirectory(
            atPath: copies, withIntermediateDirectories: false)
        let path = copies + "/copy"
        try StoreCopy.make(of: directory.path, to: path) { _, _ in }
        #expect(try StoreCopy(checking: path).head == 1)
        #expect(try FileManager.default.contentsOfDirectory(atPath: copies) == ["copy"])
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
        #expect(mode as? Int == 0o600)
        try await store.close()
        // And of a store that is not open.
        try StoreCopy.make(of: directory.path, to: path + "2") { _, _ in }
        #expect(try StoreCopy(checking: path + "2").head == 1)
    }

    @Test func `damage is found wherever it is`() async throws {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(directory: directory.path)
        for number in 0..<300 {
            try await store.appendChange(
                eventID: "\(number)", payload: Data(repeating: 7, count: 500))
        }
        let path = directory.path + "/copy"
        try StoreCopy.make(of: directory.path, to: path) { _, _ in }
        let whole = try Data(contentsOf: URL(fileURLWithPath: path))
        for page in [0, 2, whole.count / 4096 / 2] {
            var damaged = whole
            for place in 0..<64 { damaged[page * 4096 + place] = 0xA5 }
            try damaged.write(to: URL(fileURLWithPath: path))
            #expect(throws: StoreError.self, "page \(page)") { try StoreCopy(checking: path) }
        }
        try await store.close()
        #expect(throws: StoreError.self) {
            try StoreCopy.make(of: directory.path + "/none", to: path) { _, _ in }
        }
    }
}
