import Foundation
import Testing
import WidgetModel

@testable import TimelineRuntime
@testable import WidgetViews

private protocol Doing: AppIntent {}

extension Doing {
    static var title: LocalizedStringResource { "Do" }
    func perform() async throws -> some IntentResult { .result() }
}

private struct OpenGame: Doing { static let openAppWhenRun = true }
private struct PlayTheme: Doing, AudioPlaybackIntent {}
private struct Train: Doing, ForegroundContinuableIntent {}
private struct Talk: Doing, PushToTalkTransmissionIntent {}

private struct Rename: Doing {
    @Parameter(title: "Name") var name: String
    @Parameter(title: "New name") var newName: String
}

private struct PillButtonStyle: ButtonStyle {
    func makeBody(configuration: Configuration) -> some View {
        ZStack {
            Color("pill")
            configuration.label.padding(configuration.isPressed ? 2 : 4)
        }
    }
}

/// The article "Adding interactivity to widgets and Live Activities", beyond its samples.
@Suite("Adding interactivity to widgets and Live Activities") struct AddingInteractivityTests {
    private static let now = Date(timeIntervalSince1970: 1_000)
    private let home: WidgetEnvironment

    init() throws { home = try Self.environment() }

    private static func environment(_ lock: DeviceLock = .unlocked) throws -> WidgetEnvironment {
        try status.environment(state: WidgetDeviceState(lock: lock))
    }

    @Test func aControlWhoseParameterHasNoValueIsNotDrawn() async throws {
        let runtime = try WidgetDeclarations([
            StaticConfiguration(kind: status.kind, provider: TapProvider(list: "")) { _ in
                Button("Rename", intent: Rename())
            }
        ])
        let timeline = try await runtime.timeline(of: status)
        let error = #expect(throws: WidgetFailure.self) {
            try runtime.archive(timeline, of: status, on: WidgetDevice(.iOS))
        }
        #expect(
            error?.description == "a control performs Rename, whose parameter name has no value")
    }

    @Test func anIntentRunsInTheExtensionUnlessOnlyTheAppCanDoIt() {
        let intents: [any AppIntent.Type] = [
            OpenGame.self, PlayTheme.self, Train.self, Talk.self, AppTapIntent.self,
        ]
        #expect(intents.allSatisfy { $0.process == .app })
        #expect(TapIntent.process == .widgetExtension)
    }

    /// No person is there to be asked for a value.
    @Test func whatTheAppOrTheCallHasNotIsNotPerformed() async throws {
        let incomplete = IntentCall(intent: "Rename", parameters: ["name": .single("Spouty")])
        await #expect(throws: IntentError.self) {
            try await WidgetDeclarations([], intents: [Rename.self]).perform(incomplete)
        }
        await #expect(throws: WidgetFailure(description: "the app declares no intent Rename")) {
            try await WidgetDeclarations([], intents: [TapIntent.self]).perform(incomplete)
        }
    }

    @Test func aButtonLooksAsItsStyleSaysAndTheNearestStyleCounts() throws {
        let node = home.draw {
            VStack {
                Button("Charge", intent: TapIntent("a"))
                Button("Plain", intent: TapIntent("b")).buttonStyle(.bordered)
            }
            .buttonStyle(PillButtonStyle())
        }
        guard case .button(let call, let label) = node.parts.first?.content else {
            Issue.record("not drawn as a button")
            return
        }
        #expect(call == IntentCall(TapIntent("a")))
        #expect(label.parts.map(\.content) == [.color(Color("pill")), .text("Charge")])
        #expect(label.parts.last?.style.padding?.top == 4)
        #expect(node.parts.map(\.style.buttonStyle) == [.plain, .bordered])
        #expect(node.parts.last?.parts == [WidgetNode(.text("Plain"))])
    }

    @Test func aLockedToggleDoesNothing() throws {
        var toggle = ToggleInteraction(isOn: false)
        let locked = try Self.environment(.lockedWithPasscode)
        #expect(throws: InteractionRefusal.locked) { try toggle.tap(in: locked, now: Self.now) }
        #expect(toggle == ToggleInteraction(isOn: false))
    }

    private enum Event: CaseIterable {
        case tap, performed, failed, saysOn, saysOff, timePasses
    }

    /// Every sequence of seven events keeps four promises: actions run one at a time and each is
    /// followed by a reload, no timeline that came before the end of its action undoes a tap, the
    /// toggle shows the truth wherever nothing is predicted, and every wait ends.
    @Test func whateverHappensItKeepsItsPromises() throws {
        for number in 0..<279_936 {
            var toggle = ToggleInteraction(isOn: false, timeout: 1)
            var (truth, isPerforming, now, rest) = (false, false, Self.now, number)
            for _ in 0..<7 {
                let event = Event.allCases[rest % 6]
                rest /= 6
                let before = toggle
                let actions: [ToggleInteraction.Action]
                switch event {
                case .tap:
                    actions = try toggle.tap(in: home, now: now)
                    try #require(isPerforming || !actions.isEmpty)
                    let early = toggle.woke(now: now)
                    try #require(toggle.isOn != before.isOn && toggle.error == nil && early.isEmpty)
                case .performed where isPerforming:
                    isPerforming = false
                    actions = toggle.performed()
                    // It may have succeeded after its timeout.
                    try #require(actions.first == .reload && toggle.error == nil)
                    try #require(toggle.isOn == before.isOn)
                    try #require(toggle.isOptimistic == before.isOptimistic)
                case .failed where isPerforming:
                    isPerforming = false
                    actions = toggle.failed("no")
                    try #require(actions.first == .reload)
                case .saysOn, .saysOff:
                    truth = event == .saysOn
                    toggle.rebuilt(isOn: truth)
                    actions = []
                    // A timeline that was already being built shows the state before the tap.
                    try #require(toggle.isOptimistic == (isPerforming && before.isOptimistic))
                    try #require(!toggle.isOptimistic || toggle.isOn == before.isOn)
                case .timePasses:
                    now += 1
                    let waited = toggle.deadline != nil
                    actions = toggle.woke(now: now)
                    try #require(!waited || (toggle.error != nil && actions == [.reload]))
                    try #require(!toggle.isOptimistic)
                case .performed, .failed: actions = []
                }
                for case .perform(let isOn) in actions {
                    try #require(!isPerforming && isOn == toggle.isOn)
                    isPerforming = true
                }
                try #require(toggle.isOptimistic || toggle.isOn == truth)
                try #require(toggle.isOptimistic == (toggle.deadline != nil))
            }
        }
    }
}
