import Foundation
import GatewayTestSupport
import Synchronization
import Testing
import WidgetModel

@testable import TimelineRuntime
@testable import WidgetViews

/// Tests for "Review interactions in iPhone widgets on Mac": a Mac beside a running iPhone.
@Suite(.timeLimit(.minutes(30))) struct MirroredWidgetsTests {
    private let name = UUID().uuidString
    private let info = WidgetInfo(kind: "com.mygame.tasks", family: .systemSmall)
    private let gateway: ScriptedGateway
    private var tasks: TapList { .named(name) }
    private var call: IntentCall { IntentCall(TapIntent(name)) }

    init() throws { gateway = try ScriptedGateway() }

    private func environment() throws -> WidgetEnvironment {
        try WidgetContextRules().environment(
            of: info, with: WidgetTraits(), at: .iPhoneWidgetsOnMac, on: WidgetDevice(.iOS))
    }

    private func running(_ body: (TimelineClient, MirroredWidgets) async throws -> Void)
        async throws
    {
        let configuration = try #require(
            TimelineClientConfiguration(
                app: "com.mygame", client: "device-1", platform: "iOS", widgets: [info],
                reloadBudget: 1))
        let phone = TimelineClient(
            configuration: configuration,
            widgets: try WidgetDeclarations(
                [
                    StaticConfiguration(kind: info.kind, provider: TapProvider(list: name)) {
                        entry in
                        Toggle(isOn: entry.isDone, intent: TapIntent(entry.list)) {
                            Text("task")
                        }
                    }
                ], intents: [TapIntent.self]),
            connection: gateway,
            verifier: PublishedKeyVerifier(connection: gateway, app: "com.mygame"))
        let run = Task { await phone.run() }
        defer { run.cancel() }
        await gateway.wait { $0.isBuilt }
        let mac = MirroredWidgets(host: phone)
        await mac.receive(try #require(await phone.timelines[info]))
        try await body(phone, mac)
        run.cancel()
        await run.value
    }

    private func isOn(_ mac: MirroredWidgets) async throws -> Bool? {
        let shown = try await mac.shown(info, in: environment())
        guard case .toggle(let isOn)? = shown?.node.control(of: call) else { return nil }
        return isOn
    }

    @Test func theIPhonePerformsAndItsTimelineIsShown() async throws {
        try await running { phone, mac in
            let gate = AsyncStream.makeStream(of: Void.self)
            tasks.state.withLock { state in
                state.onPerform = { for await _ in gate.stream { break } }
            }
            #expect(try await isOn(mac) == false)
            let tap = Task { try await mac.interact(with: call, of: info, in: environment()) }
            try await eventually("the toggle is on") { try await isOn(mac) == true }
            #expect(try await mac.shown(info, in: environment())?.isUpdating == true)
            gate.continuation.yield()
            try await tap.value
            #expect(try await isOn(mac) == true)
            #expect(try await mac.shown(info, in: environment())?.isUpdating == false)
            #expect(tasks.state.withLock { $0.builds } == 2)
            #expect(tasks.state.withLock { $0.performed } == 1)
            #expect(await phone.rebuildWaiters.isEmpty)
        }
    }

    @Test func whatTheIPhoneCannotDoIsTakenBackWithTheReason() async throws {
        try await running { phone, mac in
            tasks.state.withLock { $0.failure = "not synchronised" }
            try await mac.interact(with: call, of: info, in: environment())
            #expect(try await isOn(mac) == false)
            var shown = try await mac.shown(info, in: environment())?.node
            #expect(shown?.texts.contains("not synchronised") == true)
            await phone.set(lock: .lockedWithPasscode)
            try await mac.interact(with: call, of: info, in: environment())
            #expect(tasks.state.withLock { $0.performed } == 1)
            shown = try await mac.shown(info, in: environment())?.node
            #expect(shown?.texts.contains(InteractionRefusal.locked.description) == true)
        }
    }

    @Test func anIPhoneThatStopsLeavesNobodyWaiting() async throws {
        try await running { phone, mac in
            tasks.state.withLock { state in
                // The widget is removed while its intent runs.
                state.onPerform = { await phone.place([]) }
            }
            try await mac.interact(with: call, of: info, in: environment())
            #expect(try await isOn(mac) == false)
            #expect(await phone.rebuildWaiters.isEmpty)
        }
    }
}
