import Foundation
import GatewayTestSupport
import Synchronization
import Testing
import TimelineClientHTTP
import WidgetModel

@testable import TimelineClient

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

    private func environment(_ lock: DeviceLock = .unlocked) throws -> WidgetEnvironment {
        try WidgetContextRules().environment(
            of: info, with: WidgetTraits(), at: .homeScreen, on: WidgetDevice(.iOS),
            state: WidgetDeviceState(lock: lock))
    }

    private func client(
        timeout: Duration = .seconds(60), app: (any AppProcess)? = nil,
        observer: (@Sendable (TimelineClientEvent) -> Void)? = nil
    ) throws -> TimelineClient {
        let configuration = try #require(
            TimelineClientConfiguration(
                app: "com.mygame", client: "device-1", platform: "iOS", widgets: [info],
                reloadBudget: 1, interactionTimeout: timeout, observer: observer))
        return TimelineClient(
            configuration: configuration,
            widgets: try WidgetRuntime(
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

    private func running(_ client: TimelineClient, _ body: () async throws -> Void) async throws {
        // A test may run two clients, one after the other.
        let before = gateway.read { $0.rebuilt.count }
        let run = Task { await client.run() }
        defer { run.cancel() }
        await gateway.wait { $0.rebuilt.count > before && $0.stream != nil }
        try await body()
        run.cancel()
        await run.value
    }

    private func isOn(_ client: TimelineClient) async throws -> Bool? {
        let shown = try await client.shown(info, in: environment())
        guard case .toggle(let isOn)? = shown?.node.control(of: call) else { return nil }
        return isOn
    }

    @Test func aToggleShowsItsNewStateAtOnceAndThenTheTrueOne() async throws {
        let client = try client()
        try await running(client) {
            let gate = AsyncStream.makeStream(of: Void.self)
            tasks.state.withLock { state in
                state.onPerform = { for await _ in gate.stream { break } }
            }
            #expect(try await isOn(client) == false)
            let tap = Task { try await client.interact(with: call, of: info, in: environment()) }
            try await eventually("the toggle is on") { try await isOn(client) == true }
            #expect(tasks.state.withLock { $0.performed } == 0)
            #expect(try await client.shown(info, in: environment())?.isUpdating == true)
            gate.continuation.yield()
            try await tap.value
            // The tap reloads more often than the budget allows.
            try await eventually("reloaded") { tasks.state.withLock { $0.builds } >= 2 }
            try await eventually("the interaction is over") { await client.interactions.isEmpty }
            #expect(try await isOn(client) == true)
            #expect(try await client.shown(info, in: environment())?.isUpdating == false)
        }
    }

    @Test func aFailureGoesBackSaysWhyAndReloadsAllTheSame() async throws {
        let client = try client()
        try await running(client) {
            tasks.state.withLock { $0.failure = "not synchronised" }
            try await client.interact(with: call, of: info, in: environment())
            #expect(try await isOn(client) == false)
            let shown = try await client.shown(info, in: environment())?.node
            #expect(shown?.texts.contains("not synchronised") == true)
            try await eventually("reloaded") { tasks.state.withLock { $0.builds } >= 2 }
            // The next success removes the failure.
            tasks.state.withLock { $0.failure = nil }
            try await client.interact(with: call, of: info, in: environment())
            try await eventually("the interaction is over") { await client.interactions.isEmpty }
            #expect(try await isOn(client) == true)
            let last = try await client.shown(info, in: environment())?.node
            #expect(last?.texts.contains("not synchronised") == false)
        }
    }

    @Test func aServerThatDoesNotAnswerIsGivenUp() async throws {
        let client = try client(timeout: .milliseconds(20))
        try await running(client) {
            let gate = AsyncStream.makeStream(of: Void.self)
            tasks.state.withLock { state in
                state.onPerform = { for await _ in gate.stream { break } }
            }
            let tap = Task { try await client.interact(with: call, of: info, in: environment()) }
            try await eventually("the failure is shown") {
                try await client.shown(info, in: environment())?.node.texts
                    .contains("no answer in time") == true
            }
            #expect(try await isOn(client) == false)
            gate.continuation.yield()
            try await tap.value
            try await eventually("the interaction is over") { await client.interactions.isEmpty }
            #expect(try await isOn(client) == true, "it had success after all")
        }
    }

    @Test func onALockedDeviceNothingIsPerformedUntilAuthentication() async throws {
        let client = try client()
        try await running(client) {
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

    @Test func whatIsNotShownIsNotPerformed() async throws {
        let client = try client()
        try await running(client) {
            await #expect(throws: InteractionRefusal.notShown) {
                try await client.interact(
                    with: IntentCall(TapIntent("another's")), of: info, in: environment())
            }
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
        try await running(client) {
            try await client.interact(with: appCall, of: info, in: environment())
            try await eventually("reloaded") { tasks.state.withLock { $0.builds } >= 2 }
            try await eventually("the interaction is over") { await client.interactions.isEmpty }
            #expect(try await isOn(client) == true)
            try await client.interact(with: call, of: info, in: environment())
            #expect(tasks.state.withLock { $0.performedBy } == [.app, .widgetExtension])
            #expect(processes.withLock { $0 } == [.app, .widgetExtension])
            #expect(app.foregrounds.withLock { $0 } == [false])
            // A failure's message comes back from the app.
            tasks.state.withLock { $0.failure = "not synchronised" }
            try await client.interact(with: appCall, of: info, in: environment())
            let shown = try await client.shown(info, in: environment())?.node
            #expect(shown?.texts.contains("not synchronised") == true)
        }
    }

    /// The app's code must not run in the extension, because it would find none of its data there.
    @Test func withoutAnAppItsIntentsFailAndTheTimelineIsReloadedAllTheSame() async throws {
        let client = try client()
        try await running(client) {
            try await client.interact(with: appCall, of: info, in: environment())
            let shown = try await client.shown(info, in: environment())?.node
            #expect(
                shown?.texts.contains(
                    "only the app can perform AppTapIntent, and no app is reachable") == true)
            #expect(tasks.state.withLock { $0.performed } == 0)
            try await eventually("reloaded") { tasks.state.withLock { $0.builds } >= 2 }
        }
    }

    /// Tests for "Respond to user interactions" and "Access customized values in your app".
    @Test func aTapOpensTheAppWhereTheWidgetOrItsLinkSays() async throws {
        let app = try TapApp([])
        let client = try client(app: app)
        try await running(client) {
            try await client.open(info, in: environment())
            try await client.open(info, at: Self.link, in: environment())
            await #expect(throws: InteractionRefusal.notShown) {
                try await client.open(info, at: URL(string: "tasks://x"), in: environment())
            }
            await #expect(throws: InteractionRefusal.notShown) {
                try await client.open(status, in: environment())
            }
        }
        let opened = app.opened.withLock { $0 }
        #expect(opened.map(\.url?.absoluteString) == ["tasks://\(name)", "tasks://news"])
        #expect(opened.map(\.widget) == [info, info])
        let alone = try self.client()
        try await running(alone) {
            await #expect(throws: WidgetFailure.self) {
                try await alone.open(info, in: environment())
            }
        }
    }

    @Test func theChangeThatComesBackIsNotBuiltAgain() async throws {
        let client = try client()
        try await running(client) {
            gateway.read {
                $0.polled = ["cursor": .string(cursor(11).text), "notifications": []]
            }
            try await client.interact(with: call, of: info, in: environment())
            try await eventually("reloaded") { tasks.state.withLock { $0.builds } >= 2 }
            await gateway.wait { $0.rebuilt.count == 2 }
            for sequence in [UInt64(11), 12] {
                var told = claims([info], sequence: sequence)
                told.expires = ScriptedGateway.seconds + 60
                try gateway.tell(told, id: cursor(sequence))
            }
            try await eventually("both changes are told") { await client.cursor == cursor(12) }
            #expect(tasks.state.withLock { $0.builds } == 3)
        }
    }

    @Test func aTimelineThatBeganBeforeTheActionEndedSaysNothingOfIt() throws {
        let on = WidgetNode(.toggle(true, call, label: WidgetNode(.text("task"))))
        let off = WidgetNode(.toggle(false, call, label: WidgetNode(.text("task"))))
        var interactions = WidgetInteractions()
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
        var interactions = WidgetInteractions()
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
}
