import ClusterTestSupport
import Foundation
import GatewayTestSupport
import Testing

@testable import GatewayPostgres

@Suite(.enabled(if: PostgresServer.isInstalled)) struct PostgresLogTests {
    @Test func twoNodesApplyTheSameBatchesInTheSameOrder() throws {
        let cluster = try ClusterFixture()
        let nodes = try [1, 2].map {
            try LogFixture(try cluster.address(user: "node\($0)"), .primary)
        }
        for node in nodes { try node.waitUntilFollowing() }
        for number in 0..<20 {
            let change = LogWrite.Change(UInt64(number))
            guard case .accepted = try nodes[number % 2].append(change) else {
                throw TestFailure("refused")
            }
        }
        let batches = try nodes.map { try $0.waitForBatches(through: 20) }
        #expect(batches[0] == batches[1])
        #expect(batches[0].map(\.position.last) == Array(0...20))
        #expect(batches[0].dropFirst().allSatisfy { $0.first == $0.position.last })
        #expect(batches[0].dropFirst().allSatisfy { $0.records.count == 1 })
    }

    @Test func aNodeFollowsThePromotedStandbyWithoutALostTail() throws {
        let cluster = try ClusterFixture(hasQuorum: true)
        let standby = try #require(cluster.standby)
        let address = try cluster.primary.address(user: "node1", and: standby)
        let node = try LogFixture(address, .quorum)
        for number in 0..<10 { _ = try node.append(.init(UInt64(number))) }
        let before = try node.waitForBatches(through: 10)
        let refused = SessionDriver(try standby.address(user: "node1"), preparing: [])
        guard case .connectionLost(let reason) = try refused.loss(), reason.contains("read-only")
        else { throw TestFailure("a standby took writes") }
        cluster.primary.kill()
        try standby.promote()
        try standby.set("synchronous_standby_names", "")
        let second = try LogFixture(try standby.address(user: "node2"), .primary)
        guard case .accepted = try second.append(.init(10)) else { throw TestFailure("refused") }
        let after = try second.waitForBatches(through: 11)
        #expect(Array(after.prefix(before.count)) == before)
        #expect(!node.events.contains(.notFollowing(.tailLost)))
        #expect(!node.events.contains(.writer(.unready(.tailLost))))
    }

    @Test func aRestoredBackupIsALostTailAndAStartBeforeItIsNot() throws {
        let cluster = try ClusterFixture(hasServer: true)
        let node = try LogFixture(try cluster.primary.address(user: "node1"), .primary)
        for number in 0..<4 { _ = try node.append(.init(UInt64(number))) }
        // The copy of an hour ago.
        let backup = try PostgresServer(standbyOf: cluster.primary, name: "backup")
        let stays = try node.waitForBatches(through: 4)
        try backup.detach()
        for number in 4..<8 { _ = try node.append(.init(UInt64(number))) }
        let known = try node.waitForBatches(through: 8)
        try backup.promote()
        let other = try WriterFixture(try backup.address(user: "node2"))
        for number in 10..<16 { _ = try other.append(.init(UInt64(number))) }

        let address = try backup.address(user: "node1")
        let lost = try LogFixture(address, .primary, after: known.last?.position)
        try lost.wait { event -> Void? in
            event == .writer(.unready(.tailLost)) ? () : nil
        }
        let again = try LogFixture(address, .primary, after: stays.last?.position)
        let batches = try again.waitForBatches(through: 10)
        #expect(batches.map(\.position.last) == Array(5...10))
        #expect(batches.map(\.records) == (10...15).map { [LogRecord(number: $0)] })
    }

    @Test func aNodeReadsTheRowThatARecordTellsOf() throws {
        let cluster = try ClusterFixture()
        let nodes = try [1, 2].map {
            try LogFixture(try cluster.address(user: "node\($0)"), .primary)
        }
        for node in nodes { try node.waitUntilFollowing() }
        let key = RegistrationKey(part: 1, app: "app", client: "c")
        var base: Int64 = 0
        for number in UInt8(1)...5 {
            let content = RegistrationContent(digest: Int64(number), payload: [number])
            let outcome = try nodes[0].write(
                .registration(RegistrationWrite(key: key, base: base, content: content)))
            guard case .written(let sequence, let revision) = outcome else {
                throw TestFailure("\(outcome)")
            }
            base = revision
            let batch = try #require(try nodes[1].waitForBatches(through: sequence).last)
            let state = LogRecord.Registration(
                part: 1, client: "c", revision: revision, digest: Int64(number))
            #expect(batch.records == [LogRecord(app: "app", .registration(state))])
            let answer = TestHTTPMonitor<RowOutcome?>(nil)
            nodes[1].log.read(.rows([key], asOf: sequence)) { outcome in
                answer.update { $0 = outcome }
            }
            guard case .rows(let rows, let head) = answer.wait(seconds: Patience.seconds, { $0 })
            else {
                throw TestFailure("nothing was read")
            }
            #expect(head >= sequence)
            #expect(rows[key]?.revision == revision)
            #expect(rows[key]?.content == content)
        }
    }

    @Test func aRecordOfANewerProgramStopsTheNodeAndNothingIsSkipped() throws {
        let cluster = try ClusterFixture()
        let node = try LogFixture(try cluster.address(user: "node1"), .primary)
        try node.waitUntilFollowing()
        _ = try node.append(.init(1))
        _ = try node.waitForBatches(through: 1)
        // The version follows the length.
        var newer = LogRecord(number: 2).encoded
        newer[1] = 9
        _ = try node.append(LogWrite.Change(key: nil, digest: 0, record: newer))
        _ = try node.append(.init(3))
        let error = PostgresError.unreadableRecord(.unknown(version: 9, type: 1), batch: 2)
        try node.wait { event -> Void? in
            if case .notFollowing(.disconnected(error)) = event { () } else { nil }
        }
        #expect(node.batches.map(\.position.last) == [0, 1])
    }

    @Test func aNodeThatIsAheadOfTheQuorumAppliesNothing() throws {
        let cluster = try ClusterFixture()
        let node = try LogFixture(
            try cluster.address(user: "node1"), .quorum, deadline: 500)
        let reason = try node.wait { event -> BatchWriter.Unreadiness? in
            if case .writer(.unready(let reason)) = event { reason } else { nil }
        }
        guard case .notDurable = reason else { throw TestFailure("\(reason)") }
        #expect(try node.append(.init(1)) == .refused(.unavailable))
        #expect(node.batches.isEmpty)
    }

    @Test func aLoginThatMayWriteTablesIsNoNode() throws {
        let cluster = try ClusterFixture()
        let node = try LogFixture(try cluster.address(), .primary)
        let reason = try node.wait { event -> BatchWriter.Unreadiness? in
            if case .writer(.unready(let reason)) = event { reason } else { nil }
        }
        guard case .misconfigured(.schema) = reason else { throw TestFailure("\(reason)") }
    }
}

/// A node's log with what it reported.
private final class LogFixture: Sendable {
    let log: PostgresLog
    private let monitor: TestHTTPMonitor<[PostgresLog.Event]>

    init(
        _ address: PostgresAddress, _ requirement: Durability.Requirement,
        after position: LogPosition? = nil, deadline: Int64 = Int64(Patience.milliseconds)
    ) throws {
        var limits = BatchLimits()
        limits.deadline = deadline
        let monitor = TestHTTPMonitor<[PostgresLog.Event]>([])
        self.monitor = monitor
        log = try PostgresLog(address, requirement, after: position, limits: limits) { event in
            monitor.update { $0.append(event) }
        }
    }

    var events: [PostgresLog.Event] { monitor.update { $0 } }

    /// The batches so far.
    var batches: [LogBatch] {
        events.compactMap { if case .batch(let batch) = $0 { batch } else { nil } }
    }

    func wait<Value>(_ body: (PostgresLog.Event) -> Value?) throws -> Value {
        let value = monitor.wait(seconds: Patience.seconds) { events in
            events.lazy.compactMap(body).first
        }
        guard let value else {
            throw TestFailure("no such event; the last are \(events.suffix(5))")
        }
        return value
    }

    func waitUntilFollowing() throws {
        try wait { event -> Void? in if case .following = event { () } else { nil } }
    }

    func waitForBatches(through last: Int64) throws -> [LogBatch] {
        try wait { event -> Void? in
            if case .batch(let batch) = event, batch.position.last >= last { () } else { nil }
        }
        return batches.filter { $0.position.last <= last }
    }

    /// Appends a change and waits for the outcome.
    func append(_ change: LogWrite.Change) throws -> WriteOutcome { try write(.changes([change])) }

    /// Appends a write and waits for the outcome.
    func write(_ content: LogWrite.Content) throws -> WriteOutcome {
        let answer = TestHTTPMonitor<WriteOutcome?>(nil)
        log.append(content, app: "app") { outcome in answer.update { $0 = outcome } }
        guard let outcome = answer.wait(seconds: Patience.seconds, { $0 }) else {
            throw TestFailure("no outcome")
        }
        return outcome
    }
}
