import Foundation
import GatewayTestSupport
import Synchronization
import Testing
import WidgetModel

@testable import TimelineRuntime
@testable import WidgetViews

/// Tests of the running client for the article "Adding interactivity to widgets and Live
/// Activities".
@Suite(.timeLimit(.minutes(30))) struct WidgetInteractionsTests {
    private let name = UUID().uuidString
    private let info = WidgetInfo(kind: "com.mygame.tasks", family: .systemSmall)
    private let gateway: ScriptedGateway
    private var tasks: TapList { .named(name) }
    private var call: IntentCall { IntentCall(TapIntent(name)) }
    private var appCall: IntentCall { IntentCall(AppTapIntent(name)) }

    init() throws { gateway = try ScriptedGateway() }

    private func environment(
        _ lock: DeviceLock = .unlocked, at location: WidgetLocation = .homeScreen
    ) throws -> WidgetEnvironment {
        try info.environment(at: location, state: WidgetDeviceState(lock: lock))
    }

    private func client(
        timeout: Duration = .seconds(60), app: (any AppProcess)? = nil,
        widgets: [WidgetInfo]? = nil, observer: (@Sendable (TimelineClientEvent) -> Void)? = nil
    ) throws -> TimelineClient {
        let configuration = try #require(
            TimelineClientConfiguration(
                app: "com.mygame", client: "device-1", platform: "iOS",
                widgets: widgets ?? [info], reloadBudget: 1, interactionTimeout: timeout,
                observer: observer))
        return TimelineClient(
            configuration: configuration,
            widgets: try WidgetDeclarations(
                [
                    StaticConfiguration(kind: info.kind, provider: TapProvider(list: name)) {
                        entry in
                        Toggle(isOn: entry.isDone, intent: TapIntent(entry.list)) {
                            Text("task")
                        }
                        Button("Complete all", intent: TapIntent("*\(entry.list)"))
                        Toggle(isOn: entry.isDone, intent: AppTapIntent(entry.list)) {
                            Text("task, in the app")
                        }
                        if let link = Self.link { Link(destination: link) { Text("news") } }
                        Text("more").widgetURL(URL(string: "tasks://\(entry.list)"))
                    }
                ], intents: [TapIntent.self, AppTapIntent.self]),
            connection: gateway,
            verifier: PublishedKeyVerifier(connection: gateway, app: "com.mygame"), archive: nil,
            app: app, settings: configuration.engineSettings)
    }

    private static let link = URL(string: "tasks://news")

    private func isOn(_ client: TimelineClient) async throws -> Bool? {
        isOn(try await client.shown(info, in: environment()))
    }

    private func isOn(_ shown: ShownWidget?) -> Bool? {
        guard case .toggle(let isOn)? = shown?.node.control(of: call) else { return nil }
        return isOn
    }

    private func says(_ text: String, _ client: TimelineClient) async throws -> Bool {
        try await client.shown(info, in: environment())?.node.texts.contains(text) == true
    }

    /// Waits for the reload that follows an interaction.
    private func settle(_ client: TimelineClient) async throws {
        try await eventually("reloaded") { tasks.state.withLock { $0.builds } >= 2 }
        try await eventually("the interaction is over") { await client.interactions.isEmpty }
    }

    /// Lets the intent wait until the stream has a value.
    private func holdPerform() -> AsyncStream<Void>.Continuation {
        let gate = AsyncStream.makeStream(of: Void.self)
        tasks.state.withLock { state in
            state.onPerform = { for await _ in gate.stream { break } }
        }
        return gate.continuation
    }

    @Test func aToggleShowsItsNewStateAtOnceAndThenTheTrueOne() async throws {
        let client = try client()
        try await gateway.running(client) {
            let gate = holdPerform()
            #expect(try await isOn(client) == false)
            let tap = Task { try await client.interact(with: call, of: info, in: environment()) }
            try await eventually("the toggle is on") { try await isOn(client) == true }
            #expect(tasks.state.withLock { $0.performed } == 0)
            #expect(try await client.shown(info, in: environment())?.isUpdating == true)
            gate.yield()
            try await tap.value
            // The tap reloads more often than the budget allows.
            try await settle(client)
            #expect(try await isOn(client) == true)
            #expect(try await client.shown(info, in: environment())?.isUpdating == false)
        }
    }

    @Test func aFailureGoesBackSaysWhyAndReloadsAllTheSame() async throws {
        let reasons = Mutex<[String]>([])
        let client = try client { event in
            guard case .interactionFailed(_, let reason) = event else { return }
            reasons.withLock { $0.append(reason) }
        }
        try await gateway.running(client) {
            tasks.state.withLock { $0.failure = "not synchronised" }
            try await client.interact(with: call, of: info, in: environment())
            #expect(try await isOn(client) == false)
            #expect(try await says("not synchronised", client))
            #expect(reasons.withLock { $0 } == ["Refused"], "what a person chose would be logged")
            try await eventually("reloaded") { tasks.state.withLock { $0.builds } >= 2 }
            // The next success removes the failure.
            tasks.state.withLock { $0.failure = nil }
            try await client.interact(with: call, of: info, in: environment())
            try await eventually("the interaction is over") { await client.interactions.isEmpty }
            #expect(try await isOn(client) == true)
            #expect(try await !says("not synchronised", client))
        }
    }

    @Test func aServerThatDoesNotAnswerIsGivenUp() async throws {
        let client = try client(timeout: .milliseconds(20))
        try await gateway.running(client) {
            let gate = holdPerform()
            let tap = Task { try await client.interact(with: call, of: info, in: environment()) }
            try await eventually("the failure is shown") {
                try await says("no answer in time", client)
            }
            #expect(try await isOn(client) == false)
            gate.yield()
            try await tap.value
            try await eventually("the interaction is over") { await client.interactions.isEmpty }
            #expect(try await isOn(client) == true, "it had success after all")
        }
    }

    @Test func whatIsNotShownOrLockedIsNotPerformed() async throws {
        let client = try client()
        try await gateway.running(client) {
            await #expect(throws: InteractionRefusal.notShown) {
                try await client.interact(
                    with: IntentCall(TapIntent("another's")), of: info, in: environment())
            }
            await #expect(throws: InteractionRefusal.locked) {
                try await client.interact(
                    with: call, of: info, in: environment(.lockedWithPasscode))
            }
            // The shown widget may have been drawn before the lock.
            await client.set(lock: .lockedWithPasscode)
            await #expect(throws: InteractionRefusal.locked) {
                try await client.interact(with: call, of: info, in: environment())
            }
            #expect(tasks.state.withLock { $0.performed } == 0)
            await client.set(lock: .unlocked)
            try await client.interact(with: call, of: info, in: environment())
            #expect(tasks.state.withLock { $0.performed } == 1)
        }
    }

    @Test func anIntentOfTheAppIsPerformedInItsProcessAndReloadedFor() async throws {
        let processes = Mutex<[IntentProcess]>([])
        let app = try TapApp([AppTapIntent.self])
        let client = try client(app: app) { event in
            if case .performed(_, _, let process) = event {
                processes.withLock { $0.append(process) }
            }
        }
        try await gateway.running(client) {
            try await client.interact(with: appCall, of: info, in: environment())
            try await settle(client)
            #expect(try await isOn(client) == true)
            try await client.interact(with: call, of: info, in: environment())
            #expect(tasks.state.withLock { $0.performedBy } == [.app, .widgetExtension])
            #expect(processes.withLock { $0 } == [.app, .widgetExtension])
            #expect(app.foregrounds.withLock { $0 } == [false])
            // A failure's message comes back from the app.
            tasks.state.withLock { $0.failure = "not synchronised" }
            try await client.interact(with: appCall, of: info, in: environment())
            #expect(try await says("not synchronised", client))
        }
    }

    /// The app's code must not run in the extension, because it would find none of its data there.
    @Test func withoutAnAppItsIntentsFailAndTheTimelineIsReloadedAllTheSame() async throws {
        let client = try client()
        try await gateway.running(client) {
            try await client.interact(with: appCall, of: info, in: environment())
            #expect(
                try await says(
                    "only the app can perform AppTapIntent, and no app is reachable", client))
            #expect(tasks.state.withLock { $0.performed } == 0)
            try await eventually("reloaded") { tasks.state.withLock { $0.builds } >= 2 }
        }
    }

    /// Tests for "Respond to user interactions" and "Access customized values in your app".
    @Test func aTapOpensTheAppWhereTheWidgetOrItsLinkSays() async throws {
        let app = try TapApp([])
        let wide = WidgetInfo(kind: info.kind, family: .systemMedium)
        let client = try client(app: app, widgets: [info, wide])
        let wideEnvironment = try wide.environment()
        try await gateway.running(client) {
            try await client.open(info, in: environment())
            // A small widget is one place to tap.
            try await client.open(info, at: Self.link, in: environment())
            try await client.open(wide, at: Self.link, in: wideEnvironment)
            await #expect(throws: InteractionRefusal.notShown) {
                try await client.open(info, at: URL(string: "tasks://x"), in: environment())
            }
            await #expect(throws: InteractionRefusal.notShown) {
                try await client.open(status, in: environment())
            }
        }
        let opened = app.opened.withLock { $0 }
        let widgetURL = "tasks://\(name)"
        #expect(opened.map(\.url?.absoluteString) == [widgetURL, widgetURL, "tasks://news"])
        #expect(opened.map(\.widget) == [info, info, wide])
        let alone = try self.client()
        try await gateway.running(alone) {
            await gateway.wait { $0.rebuilt.count > 2 }
            await #expect(throws: WidgetFailure.self) {
                try await alone.open(info, in: environment())
            }
        }
    }

    @Test func theChangeThatComesBackIsNotBuiltAgain() async throws {
        let client = try client()
        try await gateway.running(client) {
            gateway.read {
                $0.polled = ["cursor": .string(cursor(11).text), "notifications": []]
            }
            try await client.interact(with: call, of: info, in: environment())
            try await eventually("reloaded") { tasks.state.withLock { $0.builds } >= 2 }
            await gateway.wait { $0.rebuilt.count == 2 }
            for sequence in [UInt64(11), 12] {
                try gateway.tell(claims([info], sequence: sequence), id: cursor(sequence))
            }
            try await eventually("both changes are told") { await client.cursor == cursor(12) }
            #expect(tasks.state.withLock { $0.builds } == 3)
        }
    }

    @Test func aTimelineThatBeganBeforeTheActionEndedSaysNothingOfIt() throws {
        let on = WidgetNode(.toggle(true, call, label: WidgetNode(.text("task"))))
        let off = WidgetNode(.toggle(false, call, label: WidgetNode(.text("task"))))
        var interactions = PendingInteractions()
        let steps = try interactions.tap(
            call, of: info, showing: off, in: environment(), now: .seconds(1))
        #expect(steps == [.perform])
        #expect(interactions.deadline == .seconds(31))
        #expect(
            interactions.performed(call, of: info, failure: nil, now: .seconds(3)) == [.reload])
        interactions.rebuilt(info, begunAt: .seconds(2), node: off)
        #expect(interactions.applied(to: off, of: info) == on)
        interactions.rebuilt(info, begunAt: .seconds(3), node: off)
        #expect(interactions.applied(to: off, of: info) == off)
        #expect(interactions.isEmpty)
    }

    @Test func aButtonWaitsForTheTimelineThatFollows() throws {
        let node = WidgetNode(.button(call, label: WidgetNode(.text("all"))))
        var interactions = PendingInteractions()
        _ = try interactions.tap(call, of: info, showing: node, in: environment(), now: .zero)
        _ = try interactions.tap(call, of: info, showing: node, in: environment(), now: .zero)
        #expect(interactions.isUpdating(info))
        #expect(interactions.deadline == nil)
        for second in [1, 2] {
            #expect(
                interactions.performed(call, of: info, failure: "no", now: .seconds(second)) == [
                    .reload
                ])
        }
        interactions.rebuilt(info, begunAt: .seconds(1), node: node)
        #expect(interactions.isUpdating(info))
        interactions.rebuilt(info, begunAt: .seconds(2), node: nil)
        #expect(!interactions.isUpdating(info))
        _ = try interactions.tap(call, of: info, showing: node, in: environment(), now: .zero)
        interactions.place([])
        #expect(interactions.isEmpty)
        #expect(
            interactions.performed(call, of: info, failure: nil, now: .zero) == [.reload])
    }

    // MARK: Review interactions in iPhone widgets on Mac

    /// Runs an iPhone, and a Mac beside it that shows its widget.
    private func mirroring(
        _ body: (TimelineClient, MirroredWidgets) async throws -> Void
    ) async throws {
        let phone = try client()
        try await gateway.running(phone) {
            let mac = MirroredWidgets(host: phone)
            await mac.receive(try #require(await phone.timelines[info]))
            try await body(phone, mac)
        }
    }

    private func shown(_ mac: MirroredWidgets) async throws -> ShownWidget? {
        try await mac.shown(info, in: environment(at: .iPhoneWidgetsOnMac))
    }

    private func isOn(_ mac: MirroredWidgets) async throws -> Bool? {
        isOn(try await shown(mac))
    }

    private func tap(_ mac: MirroredWidgets) async throws {
        try await mac.interact(with: call, of: info, in: environment(at: .iPhoneWidgetsOnMac))
    }

    @Test func anIPhonePerformsForAMacThatShowsItsTimeline() async throws {
        try await mirroring { phone, mac in
            let gate = holdPerform()
            #expect(try await isOn(mac) == false)
            let use = Task { try await tap(mac) }
            try await eventually("the toggle is on") { try await isOn(mac) == true }
            #expect(try await shown(mac)?.isUpdating == true)
            gate.yield()
            try await use.value
            #expect(try await isOn(mac) == true)
            #expect(try await shown(mac)?.isUpdating == false)
            #expect(tasks.state.withLock { $0.builds } == 2)
            #expect(tasks.state.withLock { $0.performed } == 1)
            #expect(await phone.rebuildWaiters.isEmpty)
        }
    }

    @Test func whatAnIPhoneCannotDoIsTakenBackOnItsMacWithTheReason() async throws {
        try await mirroring { phone, mac in
            tasks.state.withLock { $0.failure = "not synchronised" }
            try await tap(mac)
            #expect(try await isOn(mac) == false)
            #expect(try await shown(mac)?.node.texts.contains("not synchronised") == true)
            await phone.set(lock: .lockedWithPasscode)
            try await tap(mac)
            #expect(tasks.state.withLock { $0.performed } == 1)
            let texts = try await shown(mac)?.node.texts
            #expect(texts?.contains(InteractionRefusal.locked.description) == true)
        }
    }

    @Test func anIPhoneThatStopsLeavesNoMacWaiting() async throws {
        try await mirroring { phone, mac in
            tasks.state.withLock { state in
                // The widget is removed while its intent runs.
                state.onPerform = { await phone.place([]) }
            }
            try await tap(mac)
            #expect(try await isOn(mac) == false)
            #expect(await phone.rebuildWaiters.isEmpty)
        }
    }
}
