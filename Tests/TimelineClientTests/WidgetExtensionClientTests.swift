import Foundation
import Synchronization
import Testing
import TimelineClientHTTP
import WidgetModel

@testable import TimelineClient

/// Tests for the client that an app with WidgetKit uses, against a gateway in memory.
@Suite(.timeLimit(.minutes(30))) final class WidgetExtensionClientTests: Sendable {
    private let gateway: ScriptedGateway
    private let directory: URL
    private let placed = Mutex([panda])
    private let builds = Mutex(0)

    private static let panda = ConfiguredWidget(
        kind: "com.mygame.character-detail", family: "systemSmall",
        parameters: ["character": .single("Power Panda")])
    private static let unipony = ConfiguredWidget(
        kind: "com.mygame.character-detail", family: "systemSmall",
        parameters: ["character": .single("Unipony")])
    private struct Refused: Error {}

    init() throws {
        gateway = try ScriptedGateway()
        directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    }

    /// Returns the client of one process of the app. Several processes share a directory.
    ///
    /// - Parameter meanwhile: What another process does while a notification is verified.
    private func client(
        sets: [RecommendationSet] = [], meanwhile: @escaping @Sendable () -> Void = {}
    ) throws -> WidgetExtensionClient {
        let widgets = placed.withLock { $0 }
        let client = WidgetExtensionClient(
            app: "com.mygame", client: "device-1", connection: gateway,
            verifier: BusyVerifier(
                verifier: PublishedKeyVerifier(connection: gateway, app: "com.mygame"),
                meanwhile: meanwhile),
            directory: directory,
            registration: {
                ClientRegistration(platform: "iOS", widgets: widgets, recommendations: sets)
            })
        return try #require(client)
    }

    private func shown(
        _ widget: ConfiguredWidget = panda, by client: WidgetExtensionClient? = nil,
        isUsable: @Sendable (Int) -> Bool = { _ in true }
    ) async throws -> Int {
        try await (client ?? self.client()).timeline(of: widget, isUsable: isUsable) {
            builds.withLock { builds in
                builds += 1
                return builds
            }
        }
    }

    /// Sets the gateway's answer to all following polls.
    ///
    /// - Parameter since: The sequence of the cursors that the answer is for; `nil` for all others.
    private func polls(
        _ widgets: [WidgetInfo] = [], sets: [String] = [], controls: [String] = [],
        since: UInt64? = nil, at sequence: UInt64
    ) throws {
        var notifications: [JSONValue] = []
        if !widgets.isEmpty || !sets.isEmpty || !controls.isEmpty {
            var told = claims(widgets, sets: sets, sequence: sequence)
            told.controls = controls
            told.expires = ScriptedGateway.seconds + 60
            notifications = [.string(try gateway.signed(told))]
        }
        let answer: JSONValue = [
            "cursor": .string(cursor(sequence).text), "notifications": .array(notifications),
        ]
        gateway.read { state in
            if let since {
                state.polledSince[cursor(since).text] = answer
            } else {
                state.polled = answer
            }
        }
    }

    private var acknowledgedCursor: String? { gateway.read { $0.acknowledgedCursor } }

    private func keptCursor(_ widget: ConfiguredWidget) -> Cursor? {
        TimelineCache(directory: directory).kept(widget)?.cursor
    }

    /// Places two widgets, and builds both at sequence 10.
    private func showTwo() async throws {
        placed.withLock { $0 = [Self.panda, Self.unipony] }
        try polls(at: 10)
        #expect(try await shown() == 1)
        #expect(try await shown(Self.unipony) == 2)
        #expect(acknowledgedCursor == cursor(10).text)
    }

    @Test func aTimelineIsBuiltOnceAndThenOnlyWhenItIsStale() async throws {
        #expect(try await shown() == 1, "first the widget is registered")
        #expect(gateway.read { $0.registrations.count } == 1)
        try polls(at: 11)
        #expect(try await shown() == 1)
        try polls([character("Unipony")], at: 12)
        #expect(try await shown() == 1, "another character's change")
        try polls([character("Power Panda")], at: 13)
        #expect(try await shown() == 2)
        try polls(at: 14)
        #expect(try await shown() == 2, "another process has the same")
        let told = gateway.read { $0.acknowledgements.map { $0.objectValue?["cursor"] } }
        #expect(told == [.string(cursor(10).text), .string(cursor(13).text)])
    }

    // MARK: Several widgets

    @Test func anAcknowledgementCoversAChangeOfOneOfTwoWidgets() async throws {
        try await showTwo()
        try polls([character("Power Panda")], at: 12)
        #expect(try await shown() == 3)
        #expect(acknowledgedCursor == cursor(12).text)
    }

    @Test func anAcknowledgementCoversNothingThatIsNotBuilt() async throws {
        try await showTwo()
        try polls([character("Power Panda"), character("Unipony")], at: 12)
        #expect(try await shown() == 3)
        #expect(acknowledgedCursor == cursor(10).text)
        #expect(keptCursor(Self.unipony) == cursor(10))
        #expect(try await shown(Self.unipony) == 4)
        #expect(acknowledgedCursor == cursor(12).text)
    }

    @Test func aTimelineThatIsAheadOfTheOthersIsNotBuiltAgain() async throws {
        try await showTwo()
        let both = [character("Power Panda"), character("Unipony")]
        try polls(both, at: 12)
        #expect(try await shown() == 3)
        try polls(both, since: 10, at: 13)
        try polls(since: 12, at: 13)
        #expect(try await shown() == 3, "unipony is still owed the change")
        #expect(keptCursor(Self.panda) == cursor(13) && keptCursor(Self.unipony) == cursor(10))
        try polls([character("Power Panda")], since: 13, at: 14)
        #expect(try await shown() == 4)
    }

    @Test func anAnswerThatCannotBeBelievedAdvancesNothing() async throws {
        try await showTwo()
        let forged: JSONValue = [
            "cursor": .string(cursor(99).text), "notifications": ["e30.e30.e30"],
        ]
        gateway.read { $0.polled = forged }
        #expect(try await shown() == 3)
        #expect(keptCursor(Self.unipony) == cursor(10))
        #expect(acknowledgedCursor == cursor(10).text)
    }

    /// Nothing reports that the system has reloaded a control.
    @Test func aControlThatIsNamedHoldsTheOthersBack() async throws {
        try await showTwo()
        try polls([character("Power Panda")], controls: ["lamp"], at: 12)
        #expect(try await shown() == 3)
        #expect(acknowledgedCursor == cursor(10).text)
    }

    /// The gateway's log lost what this timeline was built with.
    @Test func aTimelineOfALostLogIsNotAdvanced() async throws {
        try await showTwo()
        let shelf = TimelineCache(directory: directory)
        let lost = cursor(50, epoch: 2, nonce: 1)
        shelf.keep(.init(cursor: lost, timeline: "2"), of: Self.unipony)
        gateway.read {
            $0.polled = [
                "cursor": .string(cursor(60, epoch: 2, nonce: 2).text), "notifications": [],
            ]
        }
        #expect(try await shown() == 1)
        #expect(keptCursor(Self.panda) == cursor(60, epoch: 2, nonce: 2))
        #expect(keptCursor(Self.unipony) == lost)
    }

    /// The answer is about the registration that was in force when the gateway gave it.
    @Test func whatAnotherProcessRegistersMeanwhileIsNotAdvanced() async throws {
        try await showTwo()
        try polls([status], at: 12)
        let shelf = TimelineCache(directory: directory)
        let widgets = [Self.panda, Self.unipony]
        let client = try client {
            shelf.keep(
                registration: ClientRegistration(platform: "iOS", widgets: widgets)
                    .json(maskingTokens: true),
                digest: "another", of: widgets)
        }
        #expect(try await shown(by: client) == 1)
        #expect(keptCursor(Self.unipony) == cursor(10))
    }

    /// A set is confirmed by its name, whatever the cursor.
    @Test func anAcknowledgementHasItsCursorBesideSetsToo() async throws {
        let client = try client(sets: [recommended(Self.panda.kind, ["Power Panda"])])
        _ = try await shown(by: client)
        let told = gateway.read { $0.acknowledgements.first?.objectValue }
        #expect(told?["cursor"] == .string(cursor(10).text))
        #expect(told?["recommendations"] == [])
        let rebuilt = told?["rebuilt"]?.arrayValue?.first?.objectValue
        #expect(rebuilt?["kind"] == .string(Self.panda.kind))
        #expect(rebuilt?["parameters"] == ["character": "Power Panda"])
        #expect(rebuilt?["ms"]?.integerValue != nil)
    }

    @Test func aRebuildWithoutADifferenceIsReported() async throws {
        let client = try client()
        func show(_ health: Int) async throws {
            _ = try await client.timeline(of: Self.panda) { ["health": health, "level": 2] }
        }
        for (sequence, health) in [(11, 1), (12, 1), (13, 3)] as [(UInt64, Int)] {
            try polls([character("Power Panda")], at: sequence)
            try await show(health)
        }
        let unchanged = gateway.read {
            $0.rebuilt.map { $0.objectValue?["unchanged"]?.boolValue }
        }
        #expect(unchanged == [nil, true, nil])
    }

    @Test func entriesThatRanOutAreBuiltThoughNothingChanged() async throws {
        _ = try await shown()
        try polls(at: 11)
        #expect(try await shown(isUsable: { _ in false }) == 2)
        #expect(try await shown(isUsable: { $0 == 2 }) == 2)
    }

    /// No error on the way may hide a change.
    @Test func whatCannotBeAskedOrBelievedIsBuilt() async throws {
        _ = try await shown()
        gateway.read { $0.statuses = [503] }
        #expect(try await shown() == 2)
        let forged: JSONValue = [
            "cursor": .string(cursor(99).text), "notifications": ["e30.e30.e30"],
        ]
        gateway.read { $0.polled = forged }
        #expect(try await shown() == 3)
        let shelf = TimelineCache(directory: directory)
        #expect(shelf.kept(Self.panda)?.cursor == cursor(10), "no cursor comes of either")
        gateway.read { $0.polled = ["cursor": "?", "notifications": []] }
        #expect(try await shown() == 3)
        #expect(shelf.kept(Self.panda)?.cursor == nil, "without a cursor all is stale")
        try polls(at: 20)
        #expect(try await shown() == 4)
    }

    @Test func aProviderThatFailsLeavesTheTimelineAsStaleAsItWas() async throws {
        _ = try await shown()
        try polls([character("Power Panda")], at: 12)
        let client = try client()
        await #expect(throws: Refused.self) {
            let _: Int = try await client.timeline(of: Self.panda) { throw Refused() }
        }
        #expect(TimelineCache(directory: directory).kept(Self.panda)?.cursor == cursor(10))
    }

    @Test func aForgottenClientRegistersAgainAndBuildsAll() async throws {
        placed.withLock { $0 = [Self.panda, Self.unipony] }
        #expect(try await shown() == 1)
        #expect(try await shown(Self.unipony) == 2)
        gateway.read { $0.knowsClient = false }
        #expect(try await shown() == 3)
        try polls(at: 11)
        #expect(try await shown(Self.unipony) == 4)
        #expect(gateway.read { $0.registrations.count } == 2)
    }

    /// A person has just changed a widget, and the app has not registered that yet.
    @Test func aConfigurationThatIsNotRegisteredIsRegisteredFirst() async throws {
        _ = try await shown()
        try polls(at: 11)
        #expect(try await shown(Self.unipony) == 2)
        let widgets = gateway.read { $0.registrations.last?.objectValue?["widgets"] }
        #expect(widgets?.arrayValue?.count == 2)
        placed.withLock { $0 = [Self.unipony] }
        try await client().register()
        #expect(try await shown(Self.unipony) == 2)
        #expect(
            TimelineCache(directory: directory).kept(Self.panda) == nil,
            "what is placed no more is forgotten")
    }

    @Test func theAppHearsByKindWhatIsStale() async throws {
        _ = try await shown()
        try polls([character("Power Panda"), status], sets: ["watch"], at: 12)
        var expected = StaleContent()
        expected.timelines = ["com.mygame.character-detail", "com.mygame.game-status"]
        expected.recommendations = ["watch"]
        #expect(try await client().stale() == expected)
        #expect(try await shown() == 2, "to be told is not to have built")
        try polls(at: 13)
        #expect(try await client().stale().isEmpty)
    }

    @Test func aStreamTellsTheAppAtOnce() async throws {
        _ = try await shown()
        let client = try client()
        let (told, continuation) = AsyncStream.makeStream(of: StaleContent.self)
        let run = Task { try await client.follow { continuation.yield($0) } }
        await gateway.wait { $0.stream != nil }
        #expect(gateway.read { $0.resumptions } == [cursor(10).text])
        var claims = claims([status], sequence: 12)
        claims.expires = ScriptedGateway.seconds + 60
        try gateway.tell(claims, id: cursor(12))
        var iterator = told.makeAsyncIterator()
        #expect(await iterator.next()?.timelines == [status.kind])
        gateway.tell("event: reload\ndata: e30.e30.e30\n\n")
        try await run.value
    }

    // MARK: Files

    @Test func aDamagedFileIsNothing() async throws {
        _ = try await shown()
        let files = try FileManager.default.contentsOfDirectory(
            at: directory, includingPropertiesForKeys: nil)
        #expect(files.count == 2)
        for file in files { try Data("{\"widget\":".utf8).write(to: file) }
        try polls(at: 11)
        #expect(try await shown() == 2)
        #expect(gateway.read { $0.registrations.count } == 2)
    }

    @Test func aTimelineThatIsTooLargeIsBuiltEachTime() async throws {
        let large = String(repeating: "x", count: TimelineCache.timelineBytesMax)
        for build in 1...2 {
            let text = try await client().timeline(of: Self.panda) { large + "\(build)" }
            #expect(text.hasSuffix("\(build)"))
            try polls(at: 11)
        }
        #expect(TimelineCache(directory: directory).kept(Self.panda)?.cursor == cursor(11))
    }

    @Test func placedWidgetsAreCounted() {
        let other = ConfiguredWidget(kind: "k", family: "systemLarge")
        let counted = [Self.panda, other, Self.panda, Self.panda].counted
        #expect(counted.map(\.count) == [3, 1])
        #expect(counted.map(\.kind) == [Self.panda.kind, "k"])
        #expect([ConfiguredWidget]().counted.isEmpty)
    }

    @Test func aPushTokenIsWrittenInHexadecimal() {
        guard case .apns(let address) = DeliveryAddress.widgetPush(token: [0, 0x0A, 0xFF, 0x10])
        else {
            Issue.record("no address")
            return
        }
        #expect(address.token == "000aff10" && address.pushType == "widgets")
        #expect(address.environment == "production" && address.topic == nil)
    }
}

/// Verifies while another process is busy.
private struct BusyVerifier: NotificationVerifying {
    let verifier: PublishedKeyVerifier
    let meanwhile: @Sendable () -> Void

    func verify(
        _ notification: String, serverTime: Int64
    ) async throws(VerificationFailure) -> ReloadNotification {
        meanwhile()
        return try await verifier.verify(notification, serverTime: serverTime)
    }
}
