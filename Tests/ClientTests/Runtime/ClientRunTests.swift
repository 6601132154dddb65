import Foundation
import Synchronization
import Testing
import WidgetModel

@testable import TimelineRuntime
@testable import WidgetViews

struct CharacterEntry: TimelineEntry {
    var date: Date
    var name: String
    var build: Int
}

struct SelectCharacterIntent: WidgetConfigurationIntent {
    static let title: LocalizedStringResource = "Select Character"

    @Parameter(title: "Character", default: "") var character: String

    init() {}

    init(_ character: String) { self.character = character }
}

/// A provider that counts the requests it gets, and recommends the characters that a test sets.
final class CharacterProvider: AppIntentTimelineProvider {
    let builds = Mutex<[String]>([])
    let names = Mutex(["Unipony"])
    /// The number of times that it was asked for its recommendations.
    let asked = Mutex(0)
    /// The number of requests for recommendations that still fail, plus one.
    let refusals = Mutex(0)

    func placeholder(in context: Context) -> CharacterEntry {
        CharacterEntry(date: .distantPast, name: "", build: 0)
    }

    func snapshot(for configuration: SelectCharacterIntent, in context: Context) async
        -> CharacterEntry
    {
        CharacterEntry(date: .distantPast, name: configuration.character, build: 0)
    }

    func timeline(for configuration: SelectCharacterIntent, in context: Context) async
        -> Timeline<CharacterEntry>
    {
        let build = builds.withLock { builds in
            builds.append(configuration.character)
            return builds.count
        }
        let entry = CharacterEntry(
            date: .distantPast, name: configuration.character, build: build)
        return Timeline(entries: [entry], policy: .never)
    }

    func recommendations() async throws -> [AppIntentRecommendation<SelectCharacterIntent>] {
        asked.withLock { $0 += 1 }
        let isRefused = refusals.withLock { left in
            left -= left > 0 ? 1 : 0
            return left > 0
        }
        // The answer comes later, as it would from a server.
        await Task.yield()
        if isRefused { throw WidgetFailure(description: "no network") }
        return names.withLock { $0 }.map {
            AppIntentRecommendation(intent: SelectCharacterIntent($0), description: $0)
        }
    }
}

@Suite(.timeLimit(.minutes(30))) final class ClientRunTests: Sendable {
    private let gateway: ScriptedGateway
    private let archive = ClientArchive(
        directory: NSTemporaryDirectory() + "client-\(UUID().uuidString)")
    private let provider = CharacterProvider()
    private let panda = character("Power Panda")
    private let unipony = character("Unipony")

    init() throws { gateway = try ScriptedGateway() }

    deinit { try? FileManager.default.removeItem(atPath: archive.directory) }

    func client(
        archive: ClientArchive? = nil, mode: TimelineClientConfiguration.Mode = .stream,
        widgets: [WidgetInfo]? = nil, platform: String = "iOS",
        buildRetryBase: Duration = .seconds(5), numbersBuilds: Bool = true,
        _ change: (inout TimelineClientConfiguration) -> Void = { _ in }
    ) throws -> TimelineClient {
        var configuration = try #require(
            TimelineClientConfiguration(
                app: "com.mygame", client: "device-1", platform: platform,
                widgets: widgets ?? [panda, unipony], mode: mode))
        change(&configuration)
        var settings = configuration.engineSettings
        settings.retryBase = .milliseconds(1)
        settings.retryCap = .milliseconds(5)
        settings.buildRetryBase = buildRetryBase
        return TimelineClient(
            configuration: configuration,
            widgets: try WidgetDeclarations([
                AppIntentConfiguration(
                    kind: panda.kind, intent: SelectCharacterIntent.self, provider: provider
                ) { entry in
                    Text(numbersBuilds ? "\(entry.name) \(entry.build)" : entry.name)
                }
            ]),
            connection: gateway,
            verifier: PublishedKeyVerifier(connection: gateway, app: "com.mygame"),
            archive: archive, settings: settings)
    }

    @Test func aNotificationRebuildsOneWidgetAndIsAcknowledged() async throws {
        let client = try client()
        try await gateway.running(client) {
            #expect(provider.builds.withLock { $0.sorted() } == ["Power Panda", "Unipony"])
            #expect(gateway.read { $0.resumptions } == [cursor(10).text])
            // Where people configure widgets, nothing is recommended.
            #expect(gateway.read { $0.registrations[0].objectValue?["recommendations"] } == [])
            try gateway.tell(claims([unipony], sequence: 11), id: cursor(11))
            await gateway.wait { $0.acknowledgedCursor == cursor(11).text }
            #expect(provider.builds.withLock { $0.count } == 3)
            let rebuilt = gateway.read { $0.rebuilt }
            #expect(rebuilt.count == 3)
            #expect(rebuilt.last?.objectValue?["parameters"] == ["character": "Unipony"])
            let shown = try await client.timelines[unipony]?
                .node(at: .now, in: unipony.environment())
            #expect(shown == WidgetNode(.text("Unipony 3")))
        }
    }

    @Test func aRebuildWithTheSameEntriesIsReportedAsUnchanged() async throws {
        let client = try client(numbersBuilds: false)
        try await gateway.running(client) {
            try gateway.tell(claims([unipony], sequence: 11), id: cursor(11))
            await gateway.wait { $0.rebuilt.count == 3 }
        }
        let unchanged = gateway.read {
            $0.rebuilt.map { $0.objectValue?["unchanged"]?.boolValue }
        }
        #expect(unchanged == [nil, nil, true])
    }

    @Test func aClientSurvivesRefusalsBrokenStreamsAndForgedNotifications() async throws {
        gateway.read { $0.statuses = [503, 500] }
        let client = try client()
        try await gateway.running(client) {
            gateway.closeStream()
            await gateway.wait { $0.resumptions.count == 2 && $0.stream != nil }
            gateway.tell("id: \(cursor(99).text)\nevent: reload\ndata: e30.e30.e30\n\n")
            await gateway.wait { $0.resumptions.count == 3 }
            #expect(gateway.read { $0.resumptions[2] } == cursor(10).text)
            gateway.read { $0.knowsClient = false }
            gateway.closeStream()
            await gateway.wait { $0.registrations.count == 2 && $0.rebuilt.count == 4 }
            #expect(provider.builds.withLock { $0.count } == 4, "all is rebuilt after a 404")
        }
    }

    @Test func aRestartResumesFromTheArchiveWithItsTimelines() async throws {
        let first = try client(archive: archive)
        try await gateway.running(first) {
            gateway.tell("id: \(cursor(40).text)\n\n")
            while await first.cursor != cursor(40) { await Task.yield() }
        }
        let second = try client(archive: archive)
        try await gateway.running(second) {
            await gateway.wait { $0.resumptions.count == 2 }
            #expect(gateway.read { $0.resumptions[1] } == cursor(40).text)
            #expect(gateway.read { $0.registrations.count } == 1)
            let shown = try await second.timelines[panda]?.node(at: .now, in: panda.environment())
            #expect(shown?.isText(of: "Power Panda") == true)
        }
        #expect(provider.builds.withLock { $0.count } == 2)
    }

    @Test func aRestartInAnotherLocaleDrawsEverythingAgain() async throws {
        try await gateway.running(try client(archive: archive)) {}
        let again = try client(archive: archive) { $0.locale = Locale(identifier: "de") }
        try await gateway.running(again) {
            await gateway.wait { $0.rebuilt.count == 4 }
        }
        #expect(provider.builds.withLock { $0.count } == 4)
    }

    @Test func aValueThatItsIntentDoesNotAcceptIsReportedWhenTheWidgetIsPlaced() async throws {
        let reported = Mutex<[WidgetInfo]>([])
        let client = try client(widgets: [panda]) {
            $0.observer = { event in
                guard case .misconfigured(let widget, _) = event else { return }
                reported.withLock { $0.append(widget) }
            }
        }
        let wrong = WidgetInfo(
            kind: panda.kind, family: .systemSmall,
            configuration: ["character": .list(["Unipony", "Spouty"])])
        try await gateway.running(client) {
            await client.place([panda, wrong])
        }
        #expect(reported.withLock { $0 } == [wrong])
    }

    /// Whatever happened to a widget's file, a system finds either the drawing on disk, or a
    /// placeholder and a rebuild.
    @Test(arguments: ["", "{}", #"{"version":9,"checksum":"","timeline":{}}"#, "cut"])
    func whatCannotBeReadIsAPlaceholderAndBuiltAgain(damage: String) async throws {
        try await gateway.running(try client(archive: archive)) {}
        let home = try panda.environment()
        #expect(archive.node(of: panda, at: .now, in: home)?.isText(of: "Power Panda") == true)
        let file = URL(fileURLWithPath: archive.timelinePath(panda))
        let bytes = damage == "cut" ? try Data(contentsOf: file).dropLast(9) : Data(damage.utf8)
        try bytes.write(to: file)
        #expect(archive.node(of: panda, at: .now, in: home) == WidgetNode(.redacted))
        #expect(throws: TimelineArchive.Fault.self) { try archive.timeline(of: panda) }
        try await gateway.running(try client(archive: archive)) {
            await gateway.wait { $0.rebuilt.count == 3 }
        }
        #expect(provider.builds.withLock { $0.count } == 3)
        #expect(
            archive.node(of: panda, at: .now, in: home) == WidgetNode(.text("Power Panda 3")))
        #expect(gateway.read { $0.registrations.count } == 1)
    }

    @Test func whatIsNoLongerPlacedIsNotOnDisk() async throws {
        let client = try client(archive: archive)
        try await gateway.running(client) {
            await client.place([unipony])
        }
        #expect(try archive.timeline(of: panda) == nil)
        #expect(try archive.placeholder(of: panda) == nil)
        #expect(try archive.timeline(of: unipony) != nil)
    }

    /// A timeline that cannot be archived cannot be shown, so it is not acknowledged as built.
    @Test func whatCannotBeArchivedIsNotBuilt() async throws {
        // A directory takes the place of the file.
        try FileManager.default.createDirectory(
            atPath: archive.timelinePath(panda), withIntermediateDirectories: true)
        let client = try client(archive: archive)
        try await gateway.running(client, waits: false) {
            await gateway.wait { !$0.rebuilt.isEmpty && !$0.failed.isEmpty }
            #expect(gateway.read { ($0.rebuilt.count, $0.failed.count) } == (1, 1))
            #expect(await client.timelines[panda] == nil)
        }
    }

    @Test func aWidgetPlacedLaterIsRegisteredAndBuiltAlone() async throws {
        let client = try client(widgets: [panda])
        try await gateway.running(client) {
            await client.place([panda, unipony, unipony])
            await gateway.wait { $0.rebuilt.count == 2 }
            let widgets = gateway.read { $0.registrations.last?.objectValue?["widgets"] }
            #expect(widgets?.arrayValue?.last?.objectValue?["count"] == 2)
            // Other processes know the rest of the registration.
            #expect(gateway.read { $0.methods } == ["PUT", "PATCH"])
            #expect(gateway.read { $0.registrations[1].objectValue?.members.count } == 1)
            #expect(provider.builds.withLock { $0 } == ["Power Panda", "Unipony"])
        }
    }

    /// The recommendations of a kind are unknown until its provider has answered, and registering
    /// an empty set would say that people configure the widget themselves.
    @Test func aFirstStartOfflineRegistersNoSetBeforeItsProviderAnswers() async throws {
        provider.refusals.withLock { $0 = 3 }
        let client = try client(platform: "watchOS", buildRetryBase: .milliseconds(1))
        try await gateway.running(client) {
            await gateway.wait { $0.registrations.count == 2 }
        }
        let sets = gateway.read { $0.registrations.map { $0.objectValue?["recommendations"] } }
        #expect(sets[0] == [])
        let set = sets[1]?.arrayValue?.first?.objectValue
        #expect(set?["items"]?.arrayValue?.count == 1)
        #expect(set?["builtAt"] == .string(cursor(10).text))
        #expect(provider.asked.withLock { $0 } == 3)
        #expect(gateway.read { $0.methods } == ["PUT", "PATCH"])
    }

    /// Waits until the client knows that its sets are registered.
    private func registeredSets(of client: TimelineClient) async {
        while await client.engine?.registered?.recommendations.isEmpty != false {
            await Task.yield()
        }
    }

    /// The gateway keeps the set it has, and gets the new one once the server can be asked again.
    @Test func recommendationsThatCannotBeFetchedAreAskedForAgain() async throws {
        let client = try client(platform: "watchOS", buildRetryBase: .milliseconds(1))
        try await gateway.running(client) {
            await registeredSets(of: client)
            provider.names.withLock { $0 = ["Unipony", "Spouty"] }
            provider.refusals.withLock { $0 = 4 }
            try gateway.tell(claims(sets: [panda.kind], sequence: 12), id: cursor(12))
            await gateway.wait { $0.registrations.count == 3 }
            #expect(provider.refusals.withLock { $0 } == 0)
            let sets = gateway.read { $0.registrations[2].objectValue?["recommendations"] }
            let set = sets?.arrayValue?.first?.objectValue
            #expect(set?["items"]?.arrayValue?.count == 2)
            #expect(set?["builtAt"]?.stringValue != nil)
        }
    }

    /// A restart without a network forgets no set, and shows the archived timelines meanwhile.
    @Test func aSetThatCannotBeFetchedAtTheStartIsAsItWas() async throws {
        let first = try client(archive: archive, platform: "watchOS")
        try await gateway.running(first) { await registeredSets(of: first) }
        provider.refusals.withLock { $0 = 3 }
        provider.names.withLock { $0 = ["Unipony", "Spouty"] }
        let again = try client(
            archive: archive, platform: "watchOS", buildRetryBase: .milliseconds(1))
        try await gateway.running(again) {
            await gateway.wait { $0.registrations.count == 3 }
        }
        let sets = gateway.read { $0.registrations }
            .compactMap { $0.objectValue?["recommendations"]?.arrayValue?.first?.objectValue }
        #expect(sets.map { $0["items"]?.arrayValue?.count } == [1, 2])
    }

    @Test func whatTheAppInvalidatesIsLookedAtAndNamedAlsoWhenItDidNotChange() async throws {
        let client = try client(archive: archive, platform: "watchOS") {
            $0.acceptsRequests = true
        }
        try await gateway.running(client) {
            await registeredSets(of: client)
            #expect(gateway.read { $0.confirmedSets } == [])
            client.widgetCenter.invalidateConfigurationRecommendations()
            await gateway.wait { !$0.confirmedSets.isEmpty }
            #expect(gateway.read { $0.confirmedSets } == [.string(panda.kind)])
            #expect(gateway.read { $0.registrations.count } == 2)
            provider.names.withLock { $0 = [] }
            // As another process does.
            WidgetCenter(archives: [archive]).invalidateConfigurationRecommendations()
            await gateway.wait { $0.registrations.count == 3 }
            let sets = gateway.read { $0.registrations[2].objectValue?["recommendations"] }
            #expect(sets?.arrayValue?.first?.objectValue?["items"] == [])
        }
    }

    @Test func aPassDoesWhatIsToBeDoneAndEnds() async throws {
        gateway.read {
            $0.polled = ["cursor": .string(cursor(10).text), "notifications": []]
        }
        // An extension is a new process each time.
        #expect(try await client(archive: archive).refresh())
        #expect(provider.builds.withLock { $0.count } == 2)
        #expect(gateway.read { $0.rebuilt.count } == 2)
        #expect(try await client(archive: archive).refresh())
        #expect(provider.builds.withLock { $0.count } == 2, "what is fresh was built again")
        let stale = try gateway.signed(claims([panda], sequence: 11))
        gateway.read {
            $0.polled = [
                "cursor": .string(cursor(11).text), "notifications": [.string(stale)],
            ]
        }
        let third = try client(archive: archive, mode: .poll(every: .seconds(900)))
        #expect(await third.refresh())
        #expect(provider.builds.withLock { $0.count } == 3)
        let told = gateway.read { $0.acknowledgements.last?.objectValue }
        #expect(told?["cursor"] == .string(cursor(11).text))
        // A configuration that is not registered yet is registered before it is built.
        gateway.read {
            $0.polled = ["cursor": .string(cursor(11).text), "notifications": []]
        }
        await third.place([panda, unipony, character("Spouty")])
        #expect(await third.refresh())
        #expect(gateway.read { $0.registrations.count } == 2)
        #expect(provider.builds.withLock { $0.last } == "Spouty")
        #expect(gateway.read { $0.stream == nil })
        gateway.read { $0.statuses = [503, 503, 503] }
        #expect(await third.refresh() == false)
    }

    @Test func whatALockHidAtTheStartIsShownAfterwardsAndNotBuiltAgain() async throws {
        try await gateway.running(try client(archive: archive)) {}
        let again = try client(archive: archive)
        await again.set(lock: .beforeFirstUnlock)
        try await gateway.running(again) {
            await gateway.wait { $0.resumptions.count == 2 }
            #expect(await again.timelines.isEmpty)
            await again.set(lock: .unlocked)
            #expect(await again.timelines.count == 2)
            #expect(try await again.shown(panda, in: panda.environment()) != nil)
            try gateway.tell(claims([panda], sequence: 11), id: cursor(11))
            await gateway.wait { $0.rebuilt.count == 3 }
        }
        #expect(provider.builds.withLock { $0.count } == 3)
    }

    @Test func pollingDoesWhatStreamingDoes() async throws {
        let stale = try gateway.signed(claims([panda], sequence: 11))
        gateway.read {
            $0.polled = [
                "cursor": .string(cursor(11).text), "notifications": [.string(stale)],
            ]
        }
        let client = try client(mode: .poll(every: .seconds(3600)))
        try await gateway.running(client, waits: false) {
            while await client.cursor != cursor(11) { await Task.yield() }
            await gateway.wait { !$0.acknowledgements.isEmpty }
        }
    }

    @Test func aProviderThatNeverAnswersIsGivenUp() async throws {
        await #expect(throws: Deadline.Passed.self) {
            try await Deadline.run(.milliseconds(20)) {
                // This body ignores its cancellation.
                await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
            }
        }
    }

    @Test func theCenterReloadsWhatTheAppKnowsToBeStale() async throws {
        let client = try client()
        try await gateway.running(client) {
            client.widgetCenter.reloadTimelines(ofKind: panda.kind)
            await gateway.wait { $0.rebuilt.count == 4 }
            #expect(provider.builds.withLock { $0.count } == 4)
            let configured = try await client.widgetCenter.currentConfigurations()
            #expect(configured == [panda, unipony])
            let intent = configured[1].widgetConfigurationIntent(of: SelectCharacterIntent.self)
            #expect(intent?.character == "Unipony")
            await client.place([panda, panda])
            let all = await withCheckedContinuation { continuation in
                client.widgetCenter.getCurrentConfigurations {
                    continuation.resume(returning: try? $0.get())
                }
            }
            #expect(all == [panda, panda])
        }
    }
}

extension WidgetNode {
    /// Whether the node is the text of a build for this character.
    fileprivate func isText(of name: String) -> Bool {
        if case .text(let text) = content { text.hasPrefix(name) } else { false }
    }
}
