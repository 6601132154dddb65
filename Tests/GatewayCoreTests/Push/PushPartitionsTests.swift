import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore
@testable import GatewayPush

/// The partitions of clients that a node pushes to, while they are loaded and the log goes on.
@Suite final class PushPartitionsTests {
    private static let id = PushPartitions.ID(number: 1, generation: 3)
    private var partitions = PushPartitions { $0.client.hasPrefix("other") ? 2 : 1 }

    private func key(_ client: String) -> ClientKey { ClientKey(app: "app", client: client) }

    private func record(_ client: String, _ item: String = "1") -> ClientRecord {
        device([item], named: client, delivery: [apns()], since: 0, addressedAt: 0)
    }

    private func items(_ restored: [PushPartitions.Restored]) -> [String: [String]] {
        Dictionary(
            restored.map {
                (
                    $0.key.client,
                    $0.record.registration.widgets.compactMap { $0.parameters["a"]?.texts.first }
                )
            }
        ) { $1 }
    }

    private func restore(at position: UInt64, limit: Int) -> [PushPartitions.Restored] {
        partitions.restorations(at: position, limit: limit)
    }

    private func registered(_ record: ClientRecord, _ key: ClientKey) -> Bool {
        partitions.registered(record, key)
    }

    private func remove(_ id: PushPartitions.ID) -> Set<ClientKey> { partitions.remove(id) }

    private func load(_ clients: [String], asOf position: UInt64 = 10) {
        partitions.acquire(Self.id)
        partitions.add(
            Dictionary(clients.map { (key($0), record($0)) }) { $1 }, of: Self.id,
            asOf: position)
        partitions.complete(Self.id)
    }

    @Test func `rows are used once the log was applied up to their position`() {
        load(["a", "b"], asOf: 10)
        #expect(restore(at: 9, limit: 10).isEmpty)
        #expect(!partitions.isComplete(Self.id))
        #expect(items(restore(at: 10, limit: 10)) == ["a": ["1"], "b": ["1"]])
        #expect(partitions.isComplete(Self.id))
        #expect(partitions.clients(of: Self.id) == [key("a"), key("b")])
    }

    @Test func `no rows are used before all were read`() {
        partitions.acquire(Self.id)
        partitions.add([key("a"): record("a")], of: Self.id, asOf: 1)
        #expect(restore(at: 5, limit: 10).isEmpty)
    }

    @Test func `the highest position of all rows counts`() {
        load(["a"], asOf: 10)
        partitions.add([key("a"): .init(saved: nil, told: 7)], of: Self.id, asOf: 12)
        #expect(restore(at: 11, limit: 10).isEmpty)
        #expect(restore(at: 12, limit: 10).first?.progress?.told == 7)
    }

    @Test func `a registration that came with the log is newer than the row`() {
        load(["a"])
        #expect(!registered(record("a", "2"), key("a")))
        #expect(!registered(record("new", "3"), key("new")))
        #expect(items(restore(at: 10, limit: 10)) == ["a": ["2"], "new": ["3"]])
        #expect(registered(record("a", "4"), key("a")))
    }

    @Test func `who was removed meanwhile is not restored`() {
        load(["a", "b"])
        partitions.removed(key("a"))
        #expect(Set(items(restore(at: 10, limit: 10)).keys) == ["b"])
    }

    @Test func `who came back after a removal is`() {
        load(["a"])
        partitions.removed(key("a"))
        #expect(!registered(record("a", "2"), key("a")))
        #expect(items(restore(at: 10, limit: 10)) == ["a": ["2"]])
    }

    @Test func `rows of a removed app are void, and what came after it is not`() {
        load(["a", "b"])
        partitions.add([key("b"): .init(saved: nil, told: 7)], of: Self.id, asOf: 10)
        #expect(!registered(record("a", "2"), key("a")))
        partitions.removed(app: "app")
        #expect(!registered(record("b", "3"), key("b")))
        let restored = restore(at: 10, limit: 10)
        #expect(items(restored) == ["b": ["3"]])
        #expect(restored.first?.progress == nil)
    }

    @Test func `a few are restored at a time, and the log applies to those`() {
        load(["a", "b", "c"])
        let first = restore(at: 10, limit: 2).map(\.key)
        #expect(first.count == 2)
        #expect(!partitions.isComplete(Self.id))
        for key in first { #expect(registered(record(key.client), key)) }
        #expect(restore(at: 10, limit: 2).count == 1)
        #expect(partitions.isComplete(Self.id))
    }

    @Test func `clients of other partitions are no concern`() {
        load(["a"])
        #expect(!registered(record("other"), key("other")))
        #expect(!partitions.mayPush(to: key("other")))
        #expect(partitions.partition(of: key("other")) == nil)
        #expect(Set(items(restore(at: 10, limit: 10)).keys) == ["a"])
    }

    @Test func `a partition that leaves begins no push, and its clients are returned`() {
        load(["a"])
        _ = restore(at: 10, limit: 10)
        #expect(partitions.mayPush(to: key("a")))
        partitions.leave(Self.id)
        #expect(!partitions.mayPush(to: key("a")))
        #expect(remove(Self.id) == [key("a")])
        #expect(partitions.partition(of: key("a")) == nil)
    }

    @Test func `an event of an earlier generation changes nothing`() {
        load(["a"])
        let before = PushPartitions.ID(number: 1, generation: 2)
        partitions.leave(before)
        #expect(remove(before).isEmpty)
        partitions.add([key("x"): record("x")], of: before, asOf: 99)
        #expect(Set(items(restore(at: 10, limit: 10)).keys) == ["a"])
        #expect(partitions.mayPush(to: key("a")))
    }
}
