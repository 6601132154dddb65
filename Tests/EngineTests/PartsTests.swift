import GatewayDocuments
import GatewayOperations
import GatewaySigning
import GatewayTestSupport
import Synchronization
import Testing
import WidgetModel

@testable import GatewayCore
@testable import GatewayEngine
@testable import GatewayServer

@Suite struct ClientTokenRequestTests {
    @Test(arguments: [("90", 90), ("90s", 90), ("15m", 900), ("1h", 3600), ("30d", 2_592_000)])
    func durationsAreSeconds(text: String, seconds: Int64) {
        #expect(DurationText.seconds(text) == seconds)
    }

    @Test(arguments: ["", "h", "-1h", "1w", "9223372036854775807d"])
    func whatIsNoDurationIsRefused(text: String) {
        #expect(DurationText.seconds(text) == nil)
    }

    @Test func everyFaultOfAnOrderIsListed() {
        let order: JSONValue = ["sub": "a b", "ttl": "31d", "attributes": ["account": []]]
        #expect {
            _ = try ClientTokenRequest(order, limits: Limits())
        } throws: { error in
            (error as? ProblemDetails)?.faults.map(\.place) == ["sub", "ttl", "attributes.account"]
        }
    }
}

@Suite struct NotificationSignerTests {
    private func signer() throws -> NotificationSigner {
        NotificationSigner(
            issuer: "https://gateway.example", lifetime: 900,
            signer: JWSSigner.reloads(try SigningKey()), nonce: 7)
    }

    private let content = StaleSet(
        [InvalidationTarget(.timeline, "kind", [.init(name: "character", value: "Unipony")])],
        sequence: 5)

    @Test func oneStatementIsSignedOnceWhoeverAsks() async throws {
        let signer = try signer()
        let content = content
        let answers = try await withThrowingTaskGroup(of: [UInt8].self) { group in
            for _ in 0..<32 {
                group.addTask {
                    try signer.notification(
                        app: "a", content: content, cause: ChangeCause(time: "t"), now: 100)
                }
            }
            return try await group.reduce(into: Set<[UInt8]>()) { $0.insert($1) }
        }
        #expect(answers.count == 1)
        #expect(signer.signatures.value == 1)
    }

    @Test func anotherAppSequenceOrCauseIsAnotherStatement() throws {
        let signer = try signer()
        let later = StaleSet(content.names, sequence: 6)
        let answers = Set([
            try signer.notification(app: "a", content: content, cause: nil, now: 100),
            try signer.notification(app: "b", content: content, cause: nil, now: 100),
            try signer.notification(app: "a", content: later, cause: nil, now: 100),
            try signer.notification(
                app: "a", content: content, cause: ChangeCause(time: "t"), now: 100),
        ])
        #expect(answers.count == 4)
    }

    @Test func aStatementIsSignedAnewBeforeItsTimeRunsShort() throws {
        let signer = try signer()
        let first = try signer.notification(app: "a", content: content, cause: nil, now: 100)
        let soon = try signer.notification(app: "a", content: content, cause: nil, now: 110)
        let later = try signer.notification(app: "a", content: content, cause: nil, now: 200)
        let earlier = try signer.notification(app: "a", content: content, cause: nil, now: 50)
        #expect(first == soon)
        #expect(later != first)
        #expect(earlier != later)
    }
}

@Suite struct PreconditionTests {
    @Test func ifMatchNeedsTheTagThatIsThere() {
        #expect(Precondition.match(["\"a\"", "\"b\""]).holds("\"b\""))
        #expect(!Precondition.match(["\"a\""]).holds("\"b\""))
        #expect(Precondition.match(["*"]).holds("\"b\""))
        #expect(!Precondition.match(["*"]).holds(nil))
        #expect(Precondition.absent.holds(nil))
        #expect(!Precondition.absent.holds("\"a\""))
    }
}

@Suite struct RegistryTests {
    private func stream(_ number: UInt32, isPoll: Bool = false) -> Registry.OpenStream {
        .init(
            loop: LoopIndex(number % 2), id: StreamID(slot: number, serial: 0), isPoll: isPoll,
            isWhole: true)
    }

    @Test func `a stream too many takes the place of the client's oldest of its kind`() {
        let registry = Registry(streamsMax: 2)
        let key = ClientKey(app: "a", client: "c")
        func release(_ stream: Registry.OpenStream) {
            registry.releaseStream(key, stream, toldUpTo: 0, kinds: nil)
        }
        for number: UInt32 in [0, 1] {
            #expect(registry.noteStream(key, stream(number)) == nil)
            #expect(registry.noteStream(key, stream(10 + number, isPoll: true)) == nil)
        }
        #expect(registry.noteStream(ClientKey(app: "b", client: "c"), stream(20)) == nil)
        #expect(registry.noteStream(key, stream(2)) == stream(0))
        #expect(registry.noteStream(key, stream(12, isPoll: true)) == stream(10, isPoll: true))
        // It is counted no more when it ends at last.
        release(stream(0))
        #expect(registry.noteStream(key, stream(3)) == stream(1))
        release(stream(3))
        #expect(registry.noteStream(key, stream(4)) == nil)
        for number: UInt32 in [2, 4] { release(stream(number)) }
        #expect(registry.channel(key) == .stream, "its polls wait")
        for number: UInt32 in [11, 12] { release(stream(number, isPoll: true)) }
        #expect(registry.channel(key) == .poll)
    }

    @Test func whoHoldsAStreamWasSeen() {
        let registry = Registry(streamsMax: 2)
        let key = ClientKey(app: "a", client: "c")
        #expect(registry.takeSeen(now: 1, withStreams: true).isEmpty)
        #expect(registry.noteStream(key, stream(1)) == nil)
        for now in [Int64(5), 7] {
            let seen = registry.takeSeen(now: now, withStreams: true)
            #expect(seen.map(\.key) == [key] && seen.map(\.at) == [now])
        }
        #expect(registry.takeSeen(now: 8, withStreams: false).isEmpty)
        registry.releaseStream(key, stream(1), toldUpTo: 0, kinds: nil)
        #expect(registry.takeSeen(now: 9, withStreams: true).isEmpty)
    }

    @Test func `a client was last seen when it came, and before that as the store says`() {
        let registry = Registry(streamsMax: 2)
        let key = ClientKey(app: "a", client: "c")
        let record = ClientRecord(
            client: "c", registration: ClientRegistration(platform: "iOS"), attributes: .init())
        registry.noteSeen(key, now: 3)
        registry.put(record, app: "a", at: 1, isRestored: true, seenAt: 10)
        #expect(registry.client(key)?.seenAt == 10 && registry.client(key)?.isSeen == false)
        registry.put(record, app: "a", at: 2)
        #expect(registry.client(key)?.seenAt == 10)
        registry.noteSeen(key, now: 20, isStored: true)
        #expect(registry.client(key)?.seenAt == 20 && registry.client(key)?.isSeen == true)
        #expect(registry.takeSeen(now: 25, withStreams: true).isEmpty)
        registry.noteSeen(key, now: 30)
        // It is stored with the time at which it came, not with that of the storing.
        #expect(registry.takeSeen(now: 35, withStreams: true).map(\.at) == [30])
    }
}

@Suite struct StreamAdmissionPathTests {
    @Test func onlyTheReloadsOfAClientAreStreams() {
        let segments = PathSegments("/v1/apps/com.mygame/clients/phone/reloads?since=x")
        #expect(segments.match(StreamAdmission.path))
        #expect(segments.names(StreamAdmission.path).map(\.text) == ["com.mygame", "phone"])
        #expect(segments.query == "since=x")
        for path in [
            "/v1/apps/a/clients/c", "v1/apps/a/clients/c/reloads", "/v2/apps/a/clients/c/reloads",
            "/v1/apps/a/clients/c/reload", "/v1/apps/a/clients/c/d/reloads", "",
        ] {
            #expect(!PathSegments(path).match(StreamAdmission.path))
        }
    }

    @Test(arguments: [
        ("/a?", ""), ("/a", ""), ("/a?b=c", "b=c"), ("/a?b?c", "b?c"), ("?x", ""),
        ("https://h/a?b", "b"), ("https://h?b", "b"), ("/a//?//", "//"),
    ]) func theQueryIsWhatStandsBehindTheMark(target: String, query: String) {
        #expect(PathSegments(target).query == query)
    }
}

@Suite struct TimestampTests {
    @Test func timeIsRFC3339InUTC() {
        #expect(timestamp(0) == "1970-01-01T00:00:00.000Z")
        #expect(timestamp(1_795_244_397_042) == "2026-11-21T06:59:57.042Z")
    }
}

@Suite struct HTTPDateTests {
    @Test func theDateIsIMFFixdate() {
        #expect(httpDate(784_111_777) == "Sun, 06 Nov 1994 08:49:37 GMT")
    }
}

@Suite struct ShardReceiptsTests {
    @Test func theLowestPositionOfAllShardsCounts() async {
        let receipts = ShardReceipts(count: 3)
        async let lowest = receipts.lowestPosition
        receipts.record(9)
        receipts.record(4)
        receipts.record(7)
        #expect(await lowest == 4)
        #expect(await receipts.lowestPosition == 4)
    }
}

@Suite struct ChangeFilterTests {
    @Test func `an empty filter admits every change`() {
        let filter = ChangeFilter()
        #expect(filter.isEmpty)
        #expect(filter.admits(Change(entity: "E"), source: nil))
        #expect(filter.admits(kinds: [], isUnmatched: true))
    }

    @Test func `each condition has to hold`() {
        var filter = ChangeFilter()
        (filter.entity, filter.entityID, filter.source) = ("E", "1", "shop")
        #expect(!filter.isEmpty)
        #expect(filter.admits(Change(entity: "E", id: "1"), source: "shop"))
        #expect(!filter.admits(Change(entity: "F", id: "1"), source: "shop"))
        #expect(!filter.admits(Change(entity: "E", id: "2"), source: "shop"))
        #expect(!filter.admits(Change(entity: "E"), source: "shop"))
        #expect(!filter.admits(Change(entity: "E", id: "1"), source: nil))
        filter.kind = "k"
        #expect(filter.admits(kinds: ["j", "k"], isUnmatched: false))
        #expect(!filter.admits(kinds: ["j"], isUnmatched: false))
        filter.kind = nil
        filter.isUnmatchedOnly = true
        #expect(filter.admits(kinds: [], isUnmatched: true))
        #expect(!filter.admits(kinds: ["k"], isUnmatched: false))
    }

    @Test func `texts are compared by their bytes`() {
        var filter = ChangeFilter()
        filter.entity = "\u{E9}"
        #expect(!filter.admits(Change(entity: "e\u{301}"), source: nil))
    }
}

/// The requests of a node to the leader.
@Suite struct ClusterLinkTests {
    /// Returns when its task is cancelled, as a request that nobody answers.
    private static func unanswered() async -> Int {
        while !Task.isCancelled { try? await Task.sleep(for: .milliseconds(10)) }
        return 1
    }

    @Test(.timeLimit(.minutes(30))) func `a request that nobody answers ends with the lease`()
        async
    {
        let holds = Mutex(true)
        let answer = await ClusterLink.result(while: { holds.withLock { $0 } }) {
            // Only once it is under way.
            holds.withLock { $0 = false }
            return await Self.unanswered()
        }
        #expect(answer == nil)
    }

    @Test(.timeLimit(.minutes(30))) func `a request that is answered ends with its answer`() async {
        let answer = await ClusterLink.result(while: { true }) { 2 }
        #expect(answer == 2)
    }
}
