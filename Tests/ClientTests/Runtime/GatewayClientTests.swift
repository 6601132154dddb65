import Foundation
import Synchronization
import Testing
import WidgetModel

@testable import TimelineGatewayClient
@testable import TimelineRuntime
@testable import WidgetViews

/// Tests for the client that an app with WidgetKit uses, against a gateway in memory.
@Suite(.timeLimit(.minutes(30))) final class GatewayClientTests: Sendable {
    private let gateway: ScriptedGateway
    private let directory: URL
    private let placed = Mutex([panda])
    private let controls = Mutex<[PlacedControl]>([])
    private let builds = Mutex(0)
    /// The content that the system was asked to reload.
    private let reloaded = Mutex<[StaleContent]>([])
    private let now = Mutex(ContinuousClock.now)
    /// The client's pause before each retry.
    private let pauses = Mutex<[Duration]>([])
    /// The requests that get no answer yet.
    private let held = Mutex<[CheckedContinuation<Void, Never>]>([])

    private static let panda = ConfiguredWidget(
        kind: "com.mygame.character-detail", family: "systemSmall",
        parameters: ["character": .single("Power Panda")])
    private static let unipony = ConfiguredWidget(
        kind: "com.mygame.character-detail", family: "systemSmall",
        parameters: ["character": .single("Unipony")])
    /// A widget that is not placed.
    private static let boss = ConfiguredWidget(
        kind: "com.mygame.boss", family: "accessoryRectangular")
    private static let lamp = PlacedControl(kind: "lamp", id: "1")
    private struct Refused: Error {}
    private typealias Before = Interference.Before

    init() throws {
        gateway = try ScriptedGateway()
        directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    }

    /// Returns the client of one process of the app. Several processes share a directory. If
    /// `fails`, the app cannot say what is placed. `before` runs before the gateway gets a request.
    private func client(
        sets: [RecommendationSet] = [], fails: Bool = false, askLimit: Duration = .seconds(2),
        before: @escaping Before = { _ in }
    ) throws -> GatewayClient {
        let (widgets, controls) = (placed.withLock { $0 }, controls.withLock { $0 })
        let client = GatewayClient(
            app: "com.mygame", client: "device-1",
            connection: Interference(gateway: gateway, before: before),
            verifier: PublishedKeyVerifier(connection: gateway, app: "com.mygame"),
            cache: cache, askLimit: askLimit,
            reload: { content in self.reloaded.withLock { $0.append(content) } },
            registration: {
                if fails { throw Refused() }
                return ClientRegistration(
                    platform: "iOS", widgets: widgets, recommendations: sets, controls: controls)
            }, clock: { self.now.withLock { $0 } },
            pause: { wait in self.pauses.withLock { $0.append(wait) } })
        return try #require(client)
    }

    private func hold() async {
        await withCheckedContinuation { waiting in held.withLock { $0.append(waiting) } }
    }

    private func release() {
        for waiting in held.withLock({ $0 }) { waiting.resume() }
    }

    private func shown(
        _ widget: ConfiguredWidget = panda, by client: GatewayClient? = nil,
        isUsable: @Sendable (Int) -> Bool = { _ in true }
    ) async throws -> Int {
        try await (client ?? self.client()).timeline(of: widget, isUsable: isUsable) {
            builds.withLock { builds in
                builds += 1
                return builds
            }
        }
    }

    /// Sets the gateway's answer to all following polls since the sequence `since`; `nil` for all
    /// others.
    private func polls(
        _ widgets: [WidgetInfo] = [], sets: [String] = [], relevance: [String] = [],
        controls: [String] = [], all: Bool = false, since: UInt64? = nil, at sequence: UInt64
    ) throws {
        var notifications: [JSONValue] = []
        if !(widgets.isEmpty && sets.isEmpty && relevance.isEmpty && controls.isEmpty) || all {
            var told = claims(widgets, sets: sets, all: all, sequence: sequence)
            (told.relevance, told.controls) = (relevance, controls)
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

    private var cache: TimelineCache { TimelineCache(directory: directory) }

    private func keptCursor(_ widget: ConfiguredWidget = panda) -> Cursor? {
        cache.kept(widget)?.cursor
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
        let expected = [10, 12, 13].map { JSONValue.string(cursor($0).text) }
        #expect(told == expected, "another character's change need not be pushed either")
    }

    // MARK: Several widgets

    @Test func anAcknowledgementCoversWhatIsBuiltAndNothingElse() async throws {
        try await showTwo()
        try polls([character("Power Panda"), character("Unipony")], at: 12)
        #expect(try await shown() == 3)
        #expect(acknowledgedCursor == cursor(10).text)
        #expect(keptCursor(Self.unipony) == cursor(10))
        #expect(try await shown(Self.unipony) == 4)
        #expect(acknowledgedCursor == cursor(12).text)
        try polls([character("Power Panda")], at: 14)
        #expect(try await shown() == 5)
        #expect(acknowledgedCursor == cursor(14).text, "a change of one of two widgets")
    }

    @Test func aTimelineThatIsAheadOfTheOthersIsNotBuiltAgain() async throws {
        try await showTwo()
        let both = [character("Power Panda"), character("Unipony")]
        try polls(both, at: 12)
        #expect(try await shown() == 3)
        try polls(both, since: 10, at: 13)
        try polls(since: 12, at: 13)
        #expect(try await shown() == 3, "unipony is still owed the change")
        #expect(keptCursor() == cursor(13) && keptCursor(Self.unipony) == cursor(10))
        try polls([character("Power Panda")], since: 13, at: 14)
        #expect(try await shown() == 4)
    }

    /// The acknowledgement of the build was lost.
    @Test func aProviderWhoseTimelineIsFreshAcknowledgesWhatIsOwed() async throws {
        try await showTwo()
        try polls([character("Power Panda")], at: 12)
        let lossy = try client(before: { request throws(ConnectionError) in
            if request.target.hasSuffix("/acks") { throw ConnectionError(.broken, "lost") }
        })
        #expect(try await shown(by: lossy) == 3)
        #expect(acknowledgedCursor == cursor(10).text)
        try polls(at: 13)
        #expect(try await shown(Self.unipony) == 2)
        #expect(acknowledgedCursor == cursor(13).text)
        try polls(at: 14)
        #expect(try await shown() == 3)
        #expect(acknowledgedCursor == cursor(13).text, "nothing is owed any more")
    }

    @Test func aProviderHandsOverRelevanceAndControls() async throws {
        placed.withLock { $0 = [Self.panda, Self.boss] }
        #expect(try await shown() == 1)
        try polls(relevance: [Self.boss.kind], controls: ["lamp"], at: 12)
        #expect(try await shown() == 1)
        let last = reloaded.withLock { $0.last }
        #expect(last?.relevance == [Self.boss.kind] && last?.controls == ["lamp"])
        #expect(acknowledgedCursor == cursor(12).text)
        let count = reloaded.withLock { $0.count }
        gateway.read { $0.polled = .null }
        try polls(since: 12, at: 13)
        #expect(try await shown() == 1, "it is asked about since the last invalidation")
        #expect(reloaded.withLock { $0.count } == count)
    }

    @Test func relevanceAndControlsThatTheAppReloadsAreAcknowledged() async throws {
        placed.withLock { $0 = [Self.boss] }
        controls.withLock { $0 = [Self.lamp] }
        let client = try client()
        try await client.register()
        #expect(reloaded.withLock { $0.last?.controls } == ["lamp"], "made before it was watched")
        try polls(relevance: [Self.boss.kind], controls: ["lamp"], at: 12)
        try await client.reloadStale()
        let last = reloaded.withLock { $0.last }
        #expect(last?.relevance == [Self.boss.kind] && last?.controls == ["lamp"])
        #expect(acknowledgedCursor == cursor(12).text)
    }

    @Test func everythingReachesRelevanceControlsAndSets() async throws {
        placed.withLock { $0 = [Self.panda, Self.boss] }
        controls.withLock { $0 = [Self.lamp] }
        let client = try client(sets: [recommended(Self.panda.kind, ["Power Panda"])])
        _ = try await shown(by: client)
        try polls(all: true, at: 12)
        let kinds: Set = [Self.panda.kind, Self.boss.kind]
        let stale = try await client.stale()
        #expect(stale.all && stale.timelines == kinds && stale.relevance == kinds)
        #expect(stale.controls == ["lamp"] && stale.recommendations == [Self.panda.kind])
        #expect(try await shown(by: client) == 2)
        let last = reloaded.withLock { $0.last }
        #expect(last?.relevance == kinds && last?.controls == ["lamp"])
        #expect(last?.timelines == [Self.boss.kind], "which may be a timeline, never built")
        #expect(acknowledgedCursor == cursor(12).text)
    }

    /// Each provider that the system calls asks again.
    @Test func whatIsNotBuiltIsReloadedOnceHoweverOftenEverythingIsStale() async throws {
        placed.withLock { $0 = [Self.panda, Self.unipony, Self.boss] }
        try polls(at: 10)
        _ = try await shown()
        _ = try await shown(Self.unipony)
        try polls(all: true, at: 12)
        _ = try await shown()
        #expect(reloaded.withLock { $0.last?.timelines } == [Self.boss.kind])
        #expect(keptCursor(Self.unipony) == cursor(10), "its build fails")
        _ = try await shown()
        #expect(reloaded.withLock { $0.last?.timelines } == [])
    }

    /// The system may have made it before the gateway watched its data.
    @Test func whatIsNewlyPlacedIsReloaded() async throws {
        for (widgets, new) in [([Self.panda], Self.panda), ([Self.panda, Self.boss], Self.boss)] {
            placed.withLock { $0 = widgets }
            try await client().register()
            #expect(reloaded.withLock { $0.last?.relevance } == [new.kind])
        }
    }

    @Test func theCursorOfARestoredLogReplacesAHigherOne() async throws {
        placed.withLock { $0 = [Self.boss] }
        let client = try client()
        try await client.register()
        cache.systemCursor = cursor(50, nonce: 1)
        cache.owedCursor = cursor(50, nonce: 1)
        try polls(all: true, at: 20)
        try await client.reloadStale()
        #expect(cache.systemCursor == cursor(20))
        #expect(acknowledgedCursor == cursor(20).text)
    }

    @Test func aTimelineThatWasNeverBuiltHoldsTheOthersBack() async throws {
        placed.withLock { $0 = [Self.panda, Self.unipony] }
        _ = try await shown()
        try polls([character("Unipony")], at: 12)
        #expect(try await shown() == 1)
        #expect(acknowledgedCursor == cursor(10).text)
        #expect(try await shown(Self.unipony) == 2)
        #expect(acknowledgedCursor == cursor(12).text)
    }

    @Test func aRenewedSetIsConfirmedByTheCursorItWasBuiltAt() async throws {
        let client = try client(sets: [recommended(Self.panda.kind, ["Power Panda"])])
        _ = try await shown(by: client)
        try polls(sets: [Self.panda.kind], at: 12)
        let stale = try await client.stale()
        #expect(stale.cursor == cursor(12))
        try await client.reload(stale)
        #expect(reloaded.withLock { $0.last?.recommendations } == [Self.panda.kind])
        let sets = gateway.read { $0.registrations.last?.objectValue?["recommendations"] }
        #expect(sets?.arrayValue?.first?.objectValue?["builtAt"] == .string(cursor(12).text))
        #expect(acknowledgedCursor == cursor(12).text)
    }

    /// The gateway's log lost what this timeline was built with.
    @Test func aTimelineOfALostLogIsNotAdvanced() async throws {
        try await showTwo()
        let lost = cursor(50, epoch: 2, nonce: 1)
        cache.keep(.init(cursor: lost, timeline: "2"), of: Self.unipony)
        gateway.read {
            $0.polled = [
                "cursor": .string(cursor(60, epoch: 2, nonce: 2).text), "notifications": [],
            ]
        }
        #expect(try await shown() == 1)
        #expect(keptCursor() == cursor(60, epoch: 2, nonce: 2))
        #expect(keptCursor(Self.unipony) == lost)
    }

    /// The answer is about the registration that was in force when the gateway gave it.
    @Test func whatAnotherProcessRegistersMeanwhileIsNotAdvanced() async throws {
        try await showTwo()
        try polls([status], at: 12)
        let (cache, widgets) = (cache, [Self.panda, Self.unipony])
        let client = try client(before: { request in
            guard request.target.contains("/reloads") else { return }
            cache.keep(
                registration: ClientRegistration(platform: "iOS", widgets: widgets)
                    .json(maskingTokens: true), digest: "another", of: widgets)
        })
        #expect(try await shown(by: client) == 1)
        #expect(keptCursor(Self.unipony) == cursor(10))
    }

    @Test func aRebuildIsReportedAndWhetherNothingDiffers() async throws {
        let client = try client()
        for (sequence, health) in [(11, 1), (12, 1), (13, 3)] as [(UInt64, Int)] {
            try polls([character("Power Panda")], at: sequence)
            _ = try await client.timeline(of: Self.panda) { ["health": health, "level": 2] }
        }
        let rebuilt = gateway.read { $0.rebuilt }.compactMap(\.objectValue)
        #expect(rebuilt.map { $0["unchanged"]?.boolValue } == [nil, true, nil])
        #expect(rebuilt.first?["kind"] == .string(Self.panda.kind))
        #expect(rebuilt.first?["parameters"] == ["character": "Power Panda"])
        #expect(rebuilt.first?["ms"]?.integerValue != nil)
    }

    @Test func entriesThatRanOutAreBuiltThoughNothingChanged() async throws {
        _ = try await shown()
        try polls(at: 11)
        #expect(try await shown(isUsable: { _ in false }) == 2)
        #expect(try await shown(isUsable: { $0 == 2 }) == 2)
    }

    // MARK: A gateway or an app that does not answer

    @Test func aSilentGatewayCostsNoMoreThanTheLimit() async throws {
        #expect(try client().askLimit == .seconds(2))
        _ = try await shown()
        let silent = try client(askLimit: .milliseconds(1), before: { _ in await self.hold() })
        #expect(try await shown(by: silent) == 2)
        #expect(keptCursor() == cursor(10), "what is built now includes it")
        #expect(try await shown(Self.unipony, by: silent) == 3)
        while held.withLock({ $0.isEmpty }) { await Task.yield() }
        release()
    }

    @Test func anAcknowledgementThatIsNotAnsweredDelaysNoTimeline() async throws {
        let client = try client(
            askLimit: .milliseconds(200),
            before: { request in
                if request.target.hasSuffix("/acks") { await self.hold() }
            })
        #expect(try await shown(by: client) == 1)
        release()
    }

    /// A push calls the providers of all widgets.
    @Test func providersOfAProcessShareAnAnswer() async throws {
        try await showTwo()
        let asked = Mutex(0)
        let client = try client(before: { request in
            if request.target.contains("/reloads") { asked.withLock { $0 += 1 } }
        })
        try polls([character("Unipony")], at: 12)
        #expect(try await shown(by: client) == 1)
        #expect(try await shown(Self.unipony, by: client) == 3)
        #expect(asked.withLock { $0 } == 1)
        try polls(at: 13)
        #expect(try await shown(by: client) == 1)
        #expect(asked.withLock { $0 } == 2, "who asks again wants to know what is new")
        now.withLock { $0 += GatewayClient.answerAgeMax }
        #expect(try await shown(Self.unipony, by: client) == 3)
        #expect(asked.withLock { $0 } == 3, "the answer is too old")
    }

    @Test func anAppThatCannotSayWhatIsPlacedUnregistersNothing() async throws {
        _ = try await shown()
        let failing = try client(fails: true)
        await #expect(throws: GatewayFailure.self) { try await failing.register() }
        #expect(try await shown(Self.unipony, by: failing) == 2)
        #expect(gateway.read { $0.registrations.count } == 1)
        #expect(keptCursor() == cursor(10))
        // Nor does the function that apps copy.
        let article = #filePath.replacing(
            "Tests/ClientTests/Runtime/GatewayClientTests.swift",
            with: "Sources/TimelineGatewayClient/TimelineGatewayClient.docc/"
                + "AddToYourWidgetExtension.md")
        let function = try String(contentsOfFile: article, encoding: .utf8)
            .components(separatedBy: "func registration()")[1].prefix { $0 != "`" }
        #expect(function.contains("try await WidgetCenter") && !function.contains("try?"))
    }

    @Test func aStreamThatEndsIsOpenedAgainUntilTheAppIsRefused() async throws {
        let client = try client()
        gateway.read { ($0.statuses, $0.retryAfter) = ([503], "30") }
        let run = Task { try await client.reloadContinuously() }
        await gateway.wait { $0.stream != nil }
        #expect(pauses.withLock { $0 } == [.seconds(30)], "a busy gateway says when")
        gateway.closeStream()
        await gateway.wait { $0.registrations.count == 2 && $0.stream != nil }
        gateway.read { $0.statuses = [422] }
        gateway.closeStream()
        await #expect(throws: GatewayFailure.self) { try await run.value }
    }

    @Test func aFailureThatMayPassIsWorthARetry() {
        let passing = [401, 403, 404, 409, 422, 429, 503].filter { status in
            let problem = ProblemDetails(status: status, code: "code", title: "title")
            return GatewayFailure.refused(problem).mayPass
        }
        #expect(passing == [401, 403, 409, 429, 503])
        #expect(GatewayFailure.connection(ConnectionError(.timedOut, "")).mayPass)
    }

    /// No error on the way may hide a change, or advance another timeline.
    @Test func whatCannotBeAskedOrBelievedIsBuilt() async throws {
        try await showTwo()
        gateway.read { $0.statuses = [503] }
        #expect(try await shown() == 3)
        let forged: JSONValue = [
            "cursor": .string(cursor(99).text), "notifications": ["e30.e30.e30"],
        ]
        gateway.read { $0.polled = forged }
        #expect(try await shown() == 4)
        #expect(keptCursor() == cursor(10), "no cursor comes of either")
        #expect(keptCursor(Self.unipony) == cursor(10) && acknowledgedCursor == cursor(10).text)
        gateway.read { $0.polled = ["cursor": "?", "notifications": []] }
        #expect(try await shown() == 4)
        #expect(keptCursor() == nil, "without a cursor all is stale")
        try polls(at: 20)
        #expect(try await shown() == 5)
    }

    @Test func aProviderThatFailsLeavesTheTimelineAsStaleAsItWas() async throws {
        _ = try await shown()
        try polls([character("Power Panda")], at: 12)
        let client = try client()
        await #expect(throws: Refused.self) {
            let _: Int = try await client.timeline(of: Self.panda) { throw Refused() }
        }
        #expect(keptCursor() == cursor(10))
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
        placed.withLock { $0 = [Self.panda, Self.panda] }
        _ = try await shown()
        try polls(at: 11)
        #expect(try await shown(Self.unipony) == 2)
        let widgets = gateway.read { $0.registrations.last?.objectValue?["widgets"]?.arrayValue }
        let counts = widgets?.map { $0.objectValue?["count"] }
        #expect(counts == [2, 1], "a system lists widgets one by one")
        placed.withLock { $0 = [Self.unipony] }
        try await client().register()
        #expect(try await shown(Self.unipony) == 2)
        #expect(cache.kept(Self.panda) == nil, "what is placed no more is forgotten")
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
        #expect(files.count == 4)
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
        #expect(keptCursor() == cursor(11))
    }

    /// A push reaches a locked device: its cursors are readable, its timelines perhaps not.
    @Test func aCursorIsReadableWhereItsTimelineIsNot() throws {
        let options = Mutex<[String: Data.WritingOptions]>([:])
        let cache = TimelineCache(directory: directory) { data, file, option in
            let name = String(file.lastPathComponent.prefix { $0 != "-" && $0 != "." })
            options.withLock { $0[name] = option }
            return name != "timeline" && (try? data.write(to: file)) != nil
        }
        cache.keep(
            registration: ClientRegistration(platform: "iOS", widgets: [Self.panda])
                .json(maskingTokens: true), digest: "d", of: [Self.panda])
        cache.systemCursor = cursor(11)
        cache.keep(.init(cursor: cursor(10), timeline: "1"), of: Self.panda)
        let kept = TimelineCache.Kept(cursor: cursor(10), timeline: nil)
        #expect(cache.kept(Self.panda) == kept)
        #expect(cache.lowestCursor == cursor(10) && cache.digest == "d")
        let locked = TimelineCache.readableWhileLocked
        #expect(locked.contains(.completeFileProtectionUntilFirstUserAuthentication))
        #expect(
            options.withLock { $0 } == [
                "registration": locked, "state": locked, "marker": locked, "timeline": .atomic,
            ])
    }

    /// Another process wrote a timeline while this one wrote a cursor.
    @Test func aCursorIsNeverThatOfAnotherTimeline() throws {
        cache.keep(.init(cursor: cursor(10), timeline: "1"), of: Self.panda)
        let marker = try #require(
            try FileManager.default.contentsOfDirectory(
                at: directory, includingPropertiesForKeys: nil
            ).first { $0.lastPathComponent.hasPrefix("marker-") })
        let old = try Data(contentsOf: marker)
        cache.keep(.init(cursor: cursor(9), timeline: "older"), of: Self.panda)
        try old.write(to: marker)
        #expect(cache.kept(Self.panda)?.timeline == nil)
        cache.move(Self.panda, from: cursor(7), to: cursor(20))
        #expect(keptCursor() == cursor(10))
    }

    /// One process leaves out what the other calls unset.
    @Test func anUnsetParameterIsTheSameAsNone() async throws {
        placed.withLock {
            $0 = [ConfiguredWidget(kind: "k", family: "f", parameters: ["line": .unset])]
        }
        try await client().register()
        let widget = ConfiguredWidget(kind: "k", family: "f")
        try polls(at: 11)
        #expect(try await shown(widget) == 1)
        #expect(gateway.read { $0.registrations.count } == 1)
        #expect(keptCursor(placed.withLock { $0[0] }) == cursor(11))
    }

    @Test func theAppsOrdinaryTokenIsPartOfEveryRegistration() async throws {
        try await client().register(deviceToken: Data([0xA0, 1]), environment: "sandbox")
        try await client().register()
        for document in gateway.read({ $0.registrations }) {
            let delivery = document.objectValue?["delivery"]?.arrayValue
            #expect(
                delivery?.last == [
                    "type": "apns", "pushType": "background", "token": "a001",
                    "environment": "sandbox",
                ])
        }
        #expect(gateway.read { $0.registrations.count } == 2)
    }
}

/// A connection on which something happens to a request first.
private struct Interference: GatewayConnection {
    typealias Before = @Sendable (GatewayRequest) async throws(ConnectionError) -> Void
    let gateway: ScriptedGateway
    let before: Before

    func send(_ request: GatewayRequest) async throws(ConnectionError) -> GatewayResponse {
        try await before(request)
        return try await gateway.send(request)
    }

    func stream(_ request: GatewayRequest) async throws(ConnectionError) -> GatewayStream {
        try await before(request)
        return try await gateway.stream(request)
    }
}
