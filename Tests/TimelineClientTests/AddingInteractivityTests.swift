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

/// A task as an intent's parameter. It is looked up by its id when the intent is performed.
private struct Task: AppEntity {
    let id: Int
    static let typeDisplayRepresentation: TypeDisplayRepresentation = "Task"
    static let defaultQuery = TaskQuery()
    var displayRepresentation: DisplayRepresentation { "Task \(id)" }
}

private struct TaskQuery: EntityQuery {
    func entities(for identifiers: [Int]) async throws -> [Task] {
        identifiers.filter { $0 < 100 }.map(Task.init)
    }
}

/// The data that the widget's provider and the intents share, in the place of a database.
private final class Board: Sendable {
    @TaskLocal static var current = Board()
    let done = Mutex<Set<Int>>([])
}

private struct CompleteTask: AppIntent {
    struct NotSynchronized: Error {}

    static let title: LocalizedStringResource = "Complete a task"
    @Parameter(title: "Task") var task: Task
    @Parameter(title: "Fails", default: false) var fails: Bool

    init() {}

    init(_ task: Task, fails: Bool = false) { (self.task, self.fails) = (task, fails) }

    func perform() async throws -> some IntentResult {
        await _Concurrency.Task.yield()
        if fails { throw NotSynchronized() }
        Board.current.done.withLock { _ = $0.insert(task.id) }
        return .result()
    }
}

private struct BoardEntry: TimelineEntry {
    var date = Date(timeIntervalSince1970: 0)
    var done: Set<Int>
}

private struct BoardProvider: AsyncTimelineProvider {
    func placeholder(in context: Context) -> BoardEntry { BoardEntry(done: []) }
    func snapshot(in context: Context) async -> BoardEntry { placeholder(in: context) }
    func timeline(in context: Context) async throws -> Timeline<BoardEntry> {
        Timeline(
            entries: [BoardEntry(done: Board.current.done.withLock { $0 })], policy: .never)
    }
}

private struct BoardView: View {
    var done: Set<Int>

    var body: some View {
        VStack {
            Text("\(done.count) done").invalidatableContent()
            Toggle(isOn: done.contains(7), intent: CompleteTask(Task(id: 7))) { Text("Seven") }
            Button(intent: SuperCharge()) { Image(systemName: "bolt.fill") }
        }
    }
}

private let board = WidgetInfo(kind: "board", family: .systemSmall)

private func boardRuntime() throws -> WidgetRuntime {
    try WidgetRuntime([
        StaticConfiguration(kind: "board", provider: BoardProvider()) { BoardView(done: $0.done) }
    ])
}

/// Returns the drawing of a view for a widget of a family at a location.
private func drawn(
    _ family: WidgetFamily = .systemSmall, at location: WidgetLocation = .homeScreen,
    _ view: () -> some View
) throws -> WidgetNode {
    try WidgetContextRules().environment(
        of: WidgetInfo(kind: "board", family: family), with: WidgetTraits(), at: location,
        on: WidgetDevice(.iOS)
    ).draw(view)
}

/// A toggle style like the article's `TodoToggleStyle`, which looks different when it is on.
private struct TodoToggleStyle: ToggleStyle {
    @Environment(\.colorScheme) private var scheme

    func makeBody(configuration: Configuration) -> some View {
        HStack {
            Image(systemName: configuration.isOn ? "checkmark.circle.fill" : "circle")
            configuration.label.foregroundStyle(scheme == .dark ? .white : .black)
        }
    }
}

private struct PillButtonStyle: ButtonStyle {
    func makeBody(configuration: Configuration) -> some View {
        ZStack {
            Color("pill")
            configuration.label.padding(configuration.isPressed ? 2 : 4)
        }
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

private struct Described: AppIntent {
    static let title: LocalizedStringResource = "Do"
    static let description = IntentDescription("Does it.")
    func perform() async throws -> some IntentResult { .result() }

    struct Not: AppIntent {
        static let title: LocalizedStringResource = "Do"
        func perform() async throws -> some IntentResult { .result() }
    }
}

private struct DescribedByLiteral: AppIntent {
    static let title: LocalizedStringResource = "Do"
    static let description: IntentDescription = "Does it."
    func perform() async throws -> some IntentResult { .result() }
}

private struct DescribedOptionally: WidgetConfigurationIntent {
    static let title: LocalizedStringResource = "Do"
    static let description: IntentDescription? = "Does it."
}

/// The systems of the article "Adding interactivity to widgets and Live Activities", heading by
/// heading.
@Suite("Adding interactivity to widgets and Live Activities") struct AddingInteractivityTests {
    @Suite("Add an app intent that performs the action") struct Action {
        @Test func itsParametersGoWithTheCallAsTheyAreStored() {
            let call = IntentCall(CompleteTask(Task(id: 7)))
            #expect(call.parameters == ["task": .single("7"), "fails": .single("false")])
            #expect(CompleteTask.title == "Complete a task" && CompleteTask.description == nil)
        }

        @Test func itsDescriptionIsReadHoweverItIsWritten() {
            let intents: [any AppIntent.Type] = [
                Described.self, DescribedByLiteral.self, DescribedOptionally.self,
                Described.Not.self,
            ]
            let texts = intents.map { $0.intentDescription?.descriptionText.text }
            #expect(texts == ["Does it.", "Does it.", "Does it.", nil])
        }

        @Test func anEntityIsFoundAgainWhenItIsPerformed() async throws {
            let intents = try WidgetRuntime([], intents: [CompleteTask.self])
            let board = Board()
            try await Board.$current.withValue(board) {
                try await intents.perform(IntentCall(CompleteTask(Task(id: 7))))
            }
            #expect(board.done.withLock { $0 } == [7])
            let error = await #expect(throws: IntentError.self) {
                try await intents.perform(IntentCall(CompleteTask(Task(id: 100))))
            }
            #expect(error?.parameter == "task", "there no more")
        }

        /// Performing an intent that lacks a parameter's value fails, since no person is there to
        /// ask.
        @Test func aParameterWithoutValueIsAnErrorAndNoQuestion() async throws {
            let intents = try WidgetRuntime([], intents: [CompleteTask.self])
            await #expect(throws: IntentError.self) {
                try await intents.perform(IntentCall(CompleteTask()))
            }
        }
    }

    @Suite("Implement the perform function") struct Perform {
        @Test func whatItHasStoredIsInTheNextTimeline() async throws {
            let intents = try WidgetRuntime([], intents: [CompleteTask.self])
            let runtime = try boardRuntime()
            try await Board.$current.withValue(Board()) {
                let before = try await runtime.timeline(of: board).entries.first as? BoardEntry
                #expect(before?.done == [])
                try await intents.perform(IntentCall(CompleteTask(Task(id: 7))))
                let after = try await runtime.timeline(of: board).entries.first as? BoardEntry
                #expect(after?.done == [7])
            }
        }

        @Test func itsErrorReachesWhoHasToShowIt() async throws {
            let intents = try WidgetRuntime([], intents: [CompleteTask.self])
            await #expect(throws: CompleteTask.NotSynchronized.self) {
                try await intents.perform(IntentCall(CompleteTask(Task(id: 7), fails: true)))
            }
        }

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
        /// An archive keeps a button as an intent's name and values, which is enough to perform it
        /// later.
        @Test func whatAnArchiveKeepsOfAButtonIsPerformed() async throws {
            let intents = try WidgetRuntime([], intents: [SuperCharge.self, Rename.self])
            let call = IntentCall(Rename("Spouty", to: "Moby"))
            #expect(call.intent == "Rename")
            try await Rename.$done.withValue(Rename.Done()) {
                try await intents.perform(call)
                #expect(Rename.done?.names.withLock { $0 } == ["Spouty to Moby"])
            }
        }

        @Test func whatTheAppHasNotIsNotPerformed() async throws {
            let intents = try WidgetRuntime([], intents: [SuperCharge.self])
            await #expect(
                throws: WidgetFailure(description: "the app declares no intent Rename")
            ) {
                try await intents.perform(IntentCall(Rename("Spouty", to: "Moby")))
            }
            let incomplete = IntentCall(intent: "Rename", parameters: ["name": .single("Spouty")])
            await #expect(throws: IntentError.self) {
                try await WidgetRuntime([], intents: [Rename.self]).perform(incomplete)
            }
        }

        @Test func twoIntentsOfOneNameAreAnError() {
            let intents: [any AppIntent.Type] = [Rename.self, SuperCharge.self, Rename.self]
            let error = #expect(throws: WidgetDeclarationError.self) {
                try WidgetRuntime([], intents: intents)
            }
            #expect(error?.faults == ["the intent Rename is declared twice"])
        }
    }

    @Suite("Add a button") struct ButtonHeading {
        @Test func itHoldsItsLabelAndWhatItPerforms() throws {
            let call = IntentCall(intent: "SuperCharge", parameters: [:])
            #expect(
                try drawn { Button(intent: SuperCharge()) { Image(systemName: "bolt.fill") } }
                    == WidgetNode(.button(call, label: WidgetNode(.image("bolt.fill")))))
            #expect(
                try drawn { Button("Charge", intent: SuperCharge()) }
                    == WidgetNode(.button(call, label: WidgetNode(.text("Charge")))))
        }

        @Test func itLooksAsItsStyleSaysAndTheNearestStyleCounts() throws {
            let node = try drawn {
                VStack {
                    Button("Charge", intent: SuperCharge())
                    Button("Plain", intent: SuperCharge()).buttonStyle(.bordered)
                }
                .buttonStyle(PillButtonStyle())
            }
            guard case .button(let call, let label) = node.parts.first?.content else {
                Issue.record("not drawn as a button")
                return
            }
            #expect(call == IntentCall(SuperCharge()))
            #expect(label.parts.map(\.content) == [.color(Color("pill")), .text("Charge")])
            #expect(label.parts.last?.style.padding?.top == 4)
            #expect(node.parts.map(\.style.buttonStyle) == [.plain, .bordered])
            #expect(node.parts.last?.parts == [WidgetNode(.text("Plain"))])
        }

        /// A button has no state of its own, so no timeline can contradict it.
        @Test func itIsTheSameWhateverHappened() throws {
            let before = try drawn { BoardView(done: []) }
            let after = try drawn { BoardView(done: [7]) }
            guard case .stack(_, let old) = before.content, case .stack(_, let new) = after.content
            else {
                Issue.record("not drawn as a stack")
                return
            }
            #expect(old[2] == new[2] && old[0] != new[0])
        }

        @Test func viewsThatWaitForItAreMarkedAndNoOthers() throws {
            let node = try drawn { BoardView(done: []) }
            guard case .stack(_, let parts) = node.content else {
                Issue.record("not drawn as a stack")
                return
            }
            #expect(parts.map { $0.marks.contains(.invalidatable) } == [true, false, false])
        }

        @Test func whereFamiliesHaveNoneItIsShownAndInactive() throws {
            let inline = try WidgetContextRules().environment(
                of: WidgetInfo(kind: "board", family: .accessoryInline), with: WidgetTraits(),
                at: .lockScreen, on: WidgetDevice(.iOS))
            #expect(inline.interactionRefusal == .family(.accessoryInline))
        }
    }

    @Suite("Review interactions in iPhone widgets on Mac") struct OnMac {
        private func environment(_ lock: DeviceLock = .unlocked) throws -> WidgetEnvironment {
            try WidgetContextRules().environment(
                of: board, with: WidgetTraits(), at: .iPhoneWidgetsOnMac, on: WidgetDevice(.iOS),
                state: WidgetDeviceState(lock: lock))
        }

        /// The iPhone decides whether an interaction is allowed, and performs it.
        @Test func theIPhoneDecides() throws {
            #expect(try environment().isInteractive)
            #expect(try environment(.lockedWithPasscode).interactionRefusal == .locked)
        }

        /// The Mac receives exactly what the iPhone drew, with every mark and every call.
        @Test func whatIsSentToTheMacIsWhatWasDrawn() throws {
            let node = try environment().draw { BoardView(done: [7]) }
            let sent = node.json.serialized
            #expect(WidgetNode(try JSONValue(parsing: sent)) == node)
            #expect("\(node)".contains("CompleteTask"))
        }

        /// The toggle shows its new state however long the way to the iPhone and back takes.
        @Test func aToggleShowsItsNewStateUntilTheIPhonesTimelineIsThere() throws {
            let now = Date(timeIntervalSince1970: 0)
            var toggle = ToggleInteraction(isOn: false, timeout: 60)
            _ = try toggle.tap(in: environment(), now: now)
            #expect(toggle.woke(now: now + 59).isEmpty && toggle.isOn && toggle.isOptimistic)
            _ = toggle.performed()
            #expect(toggle.isOn && toggle.isOptimistic)
            toggle.rebuilt(isOn: true)
            #expect(toggle.isOn && !toggle.isOptimistic)
        }
    }

    @Suite("Add a toggle") struct ToggleHeading {
        private static let now = Date(timeIntervalSince1970: 1_000)

        private static func environment(_ lock: DeviceLock = .unlocked) throws -> WidgetEnvironment
        {
            try WidgetContextRules().environment(
                of: WidgetInfo(kind: "todo", family: .systemSmall), with: WidgetTraits(),
                at: .homeScreen, on: WidgetDevice(.iOS), state: WidgetDeviceState(lock: lock))
        }

        private let home: WidgetEnvironment

        init() throws { home = try Self.environment() }

        /// A custom style's code runs only while the widget is archived, so both states are drawn
        /// then.
        @Test func aStyleOfOnesOwnIsDrawnForBothStates() throws {
            let call = IntentCall(CompleteTask(Task(id: 7)))
            let node = home.draw {
                VStack {
                    Toggle(isOn: false, intent: CompleteTask(Task(id: 7))) { Text("Seven") }
                    Toggle(isOn: true, intent: CompleteTask(Task(id: 8))) { Text("Eight") }
                        .toggleStyle(.checkbox)
                }
                .toggleStyle(TodoToggleStyle())
                .toggleStyle(.switch)
            }
            let toggle = try #require(node.parts.first)
            #expect(node.parts.last?.style.toggleStyle == .checkbox)
            guard case .styledToggle(false, call, let on, let off) = toggle.content else {
                Issue.record("not drawn in both states")
                return
            }
            #expect(on.parts.first?.content == .image("checkmark.circle.fill"))
            #expect(off.parts.first?.content == .image("circle"))
            #expect(on.parts.last?.style.foreground == .black)
            #expect(toggle.parts == [off])
            let todo = WidgetInfo(kind: "todo", family: .systemSmall)
            var interactions = WidgetInteractions()
            #expect(
                try interactions.tap(call, of: todo, showing: node, in: home, now: .zero)
                    == [.perform])
            let tapped = interactions.applied(to: node, of: todo)
            #expect(tapped.parts.first?.parts == [on])
            #expect(WidgetNode(try JSONValue(parsing: node.json.serialized)) == node)
        }

        @Test func aHiddenToggleTellsItsStateInNeitherLook() throws {
            let hidden = WidgetDeviceState(
                lock: .lockedWithoutPasscode,
                sensitiveContent: SensitiveContentSettings(showsOnLockScreen: false))
            let locked = try WidgetContextRules().environment(
                of: WidgetInfo(kind: "todo", family: .accessoryRectangular), with: WidgetTraits(),
                at: .lockScreen, on: WidgetDevice(.iOS), state: hidden)
            let view = { (isSensitive: Bool) in
                Toggle(isOn: true, intent: CompleteTask(Task(id: 7))) {
                    Text("secret").privacySensitive()
                }
                .toggleStyle(TodoToggleStyle())
                .privacySensitive(isSensitive)
            }
            #expect(locked.draw { view(true) }.content == .redacted)
            #expect(!"\(locked.draw { view(false) })".contains("secret"))
        }

        @Test func itShowsTheNewStateAtOnceAndThenTheTrueOne() throws {
            var toggle = ToggleInteraction(isOn: false)
            #expect(try toggle.tap(in: home, now: Self.now) == [.perform(isOn: true)])
            #expect(toggle.isOn && toggle.isOptimistic)
            // A timeline that was already being built shows the state before the tap.
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
            // The action succeeded after all, later than its timeout.
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

        /// Every sequence of seven events keeps three promises: actions run one at a time and each
        /// is followed by a reload, the toggle shows the truth wherever nothing is predicted, and
        /// every wait ends.
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
