import Foundation
import Synchronization
import Testing
import WidgetModel

@testable import TimelineClient

private struct SuperCharge: AppIntent {
    static let title: LocalizedStringResource = "Emoji Ranger SuperCharger"
    func perform() async throws -> some IntentResult { .result() }
}

private struct Rename: AppIntent {
    final class Done: Sendable {
        let names = Mutex<[String]>([])
    }

    static let title: LocalizedStringResource = "Rename"
    @TaskLocal static var done: Done?

    @Parameter(title: "Name") var name: String
    @Parameter(title: "New name") var newName: String

    init() {}

    init(_ name: String, to newName: String) { (self.name, self.newName) = (name, newName) }

    func perform() async throws -> some IntentResult {
        Self.done?.names.withLock { $0.append("\(name) to \(newName)") }
        return .result()
    }
}

private struct OpenGame: AppIntent {
    static let title: LocalizedStringResource = "Open the game"
    static let openAppWhenRun = true
    func perform() async throws -> some IntentResult { .result() }
}

private struct PlayTheme: AudioPlaybackIntent {
    static let title: LocalizedStringResource = "Play the theme"
    func perform() async throws -> some IntentResult { .result() }
}

private struct EndFight: LiveActivityIntent {
    static let title: LocalizedStringResource = "End the fight"
    func perform() async throws -> some IntentResult { .result() }
}

private struct Train: ForegroundContinuableIntent {
    static let title: LocalizedStringResource = "Train"
    func perform() async throws -> some IntentResult { .result() }
}

private struct Talk: PushToTalkTransmissionIntent {
    static let title: LocalizedStringResource = "Talk to the team"
    func perform() async throws -> some IntentResult { .result() }
}

/// The systems of the article "Adding interactivity to widgets and Live Activities", heading by
/// heading.
@Suite("Adding interactivity to widgets and Live Activities") struct AddingInteractivityTests {
    @Suite("Implement the perform function") struct Perform {
        @Test func anIntentRunsInTheExtensionUnlessOnlyTheAppCanDoIt() {
            #expect(SuperCharge.process == .widgetExtension)
            #expect(OpenGame.process == .app)
            #expect(PlayTheme.process == .app)
            #expect(EndFight.process == .app)
            #expect(Train.process == .app)
            #expect(Talk.process == .app)
        }
    }

    @Suite("Understand the role of app intents") struct Role {
        /// What an archive keeps of a button is a name and values: enough to perform it later.
        @Test func whatAnArchiveKeepsOfAButtonIsPerformed() async throws {
            let intents = try InteractiveIntents([SuperCharge.self, Rename.self])
            let call = IntentCall(Rename("Spouty", to: "Moby"))
            #expect(call.intent == "Rename")
            try await Rename.$done.withValue(Rename.Done()) {
                try await intents.perform(call)
                #expect(Rename.done?.names.withLock { $0 } == ["Spouty to Moby"])
            }
        }

        @Test func whatTheAppHasNotIsNotPerformed() async throws {
            let intents = try InteractiveIntents([SuperCharge.self])
            await #expect(throws: InteractiveIntents.Fault.unknown("Rename")) {
                try await intents.perform(IntentCall(Rename("Spouty", to: "Moby")))
            }
            let incomplete = IntentCall(intent: "Rename", parameters: ["name": .single("Spouty")])
            await #expect(throws: IntentError.self) {
                try await InteractiveIntents([Rename.self]).perform(incomplete)
            }
        }

        @Test func twoIntentsOfOneNameAreAnError() {
            #expect(throws: InteractiveIntents.Fault.declaredTwice("Rename")) {
                try InteractiveIntents([Rename.self, SuperCharge.self, Rename.self])
            }
        }
    }

    @Suite("Add a toggle") struct Toggle {
        private static let now = Date(timeIntervalSince1970: 1_000)

        private static func environment(_ lock: DeviceLock = .unlocked) throws -> WidgetEnvironment
        {
            try WidgetContextRules().environment(
                of: WidgetInfo(kind: "todo", family: .systemSmall), with: WidgetTraits(),
                at: .homeScreen, on: WidgetDevice(.iOS), state: WidgetDeviceState(lock: lock))
        }

        private let home: WidgetEnvironment

        init() throws { home = try Self.environment() }

        @Test func itShowsTheNewStateAtOnceAndThenTheTrueOne() throws {
            var toggle = ToggleInteraction(isOn: false)
            #expect(try toggle.tap(in: home, now: Self.now) == [.perform(isOn: true)])
            #expect(toggle.isOn && toggle.isOptimistic)
            // A timeline that was under way tells of the time before.
            toggle.rebuilt(isOn: false)
            #expect(toggle.isOn)
            #expect(toggle.performed() == [.reload])
            #expect(toggle.isOn && toggle.isOptimistic)
            toggle.rebuilt(isOn: true)
            #expect(toggle.isOn && !toggle.isOptimistic && toggle.error == nil)
        }

        @Test func theServersWordCountsWhateverWasPredicted() throws {
            var toggle = ToggleInteraction(isOn: false)
            _ = try toggle.tap(in: home, now: Self.now)
            _ = toggle.performed()
            toggle.rebuilt(isOn: false)
            #expect(!toggle.isOn && !toggle.isOptimistic)
        }

        @Test func onFailureItGoesBackAndSaysWhy() throws {
            var toggle = ToggleInteraction(isOn: true)
            _ = try toggle.tap(in: home, now: Self.now)
            #expect(toggle.failed("synchronization failed") == [.reload])
            #expect(toggle.isOn && toggle.error == "synchronization failed")
            _ = try toggle.tap(in: home, now: Self.now)
            #expect(toggle.error == nil)
        }

        @Test func whenNothingIsHeardInTimeItGoesBack() throws {
            var toggle = ToggleInteraction(isOn: false, timeout: 5)
            _ = try toggle.tap(in: home, now: Self.now)
            #expect(toggle.deadline == Self.now + 5)
            #expect(toggle.woke(now: Self.now + 4.9).isEmpty)
            #expect(toggle.woke(now: Self.now + 5) == [.reload])
            #expect(!toggle.isOn && toggle.error == "no answer in time")
            // It had success after all.
            #expect(toggle.performed() == [.reload])
            toggle.rebuilt(isOn: true)
            #expect(toggle.isOn && toggle.error == nil)
        }

        @Test func onALockedDeviceItIsInactive() throws {
            var toggle = ToggleInteraction(isOn: false)
            let before = toggle
            let locked = try Self.environment(.lockedWithPasscode)
            #expect(throws: InteractionRefusal.locked) {
                try toggle.tap(in: locked, now: Self.now)
            }
            #expect(toggle == before)
        }

        private enum Event: CaseIterable {
            case tap, performed, failed, saysOn, saysOff, timePasses
        }

        /// Every sequence of seven events: one action at a time, each followed by a reload, the
        /// truth wherever nothing is predicted, and an end to every wait.
        @Test func whateverHappensItKeepsItsPromises() throws {
            for number in 0..<279_936 {
                var toggle = ToggleInteraction(isOn: false, timeout: 1)
                var (truth, isPerforming, now, rest) = (false, false, Self.now, number)
                for _ in 0..<7 {
                    let event = Event.allCases[rest % 6]
                    rest /= 6
                    let actions: [ToggleInteraction.Action]
                    switch event {
                    case .tap: actions = try toggle.tap(in: home, now: now)
                    case .performed where isPerforming:
                        isPerforming = false
                        actions = toggle.performed()
                        try #require(actions.first == .reload)
                    case .failed where isPerforming:
                        isPerforming = false
                        actions = toggle.failed("no")
                        try #require(actions.first == .reload)
                    case .saysOn, .saysOff:
                        truth = event == .saysOn
                        toggle.rebuilt(isOn: truth)
                        actions = []
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
}
