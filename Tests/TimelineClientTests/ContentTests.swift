import Foundation
import Testing
import WidgetModel

@testable import TimelineClient

private struct ToggleTodo: AppIntent {
    static let title: LocalizedStringResource = "Toggle a task"
    @Parameter(title: "Task", default: "") var task: String
    init() {}
    init(_ task: String) { self.task = task }
    func perform() async throws -> some IntentResult { .result() }
}

private struct TodoItemView: View {
    var todo: String
    var isComplete: Bool

    var body: some View {
        Toggle(isOn: isComplete, intent: ToggleTodo(todo)) { Text(todo) }
    }
}

private struct GameStatusView: View {
    @Environment(\.widgetFamily) private var family
    @Environment(\.widgetRenderingMode) private var mode
    var status: String
    var isLate = false

    var body: some View {
        switch family {
        case .systemSmall:
            VStack {
                Text(status).privacySensitive()
                if isLate { Text("late").widgetAccentable() }
                if mode == .fullColor { Image("scene") } else { Image(systemName: "flag") }
            }
            .containerBackground(for: .widget) { Image("paper") }
        default:
            Text("not available")
        }
    }
}

/// The heading "Display content in your widget" of the article "Creating a widget extension", and
/// what the others ask of its views.
@Suite("Display content in your widget") struct ContentTests {
    private func environment(
        _ family: WidgetFamily = .systemSmall, at location: WidgetLocation = .homeScreen,
        _ state: WidgetDeviceState = WidgetDeviceState(), hasContent: Bool = true
    ) throws -> WidgetEnvironment {
        try WidgetContextRules().environment(
            of: WidgetInfo(kind: "k", family: family), with: WidgetTraits(), at: location,
            on: WidgetDevice(.iOS), state: state, hasContent: hasContent)
    }

    private func text(_ text: String, _ marks: WidgetNode.Marks = []) -> WidgetNode {
        WidgetNode(.text(text), marks: marks)
    }

    @Test func theViewSeesItsEnvironment() throws {
        let view = { GameStatusView(status: "turn 1", isLate: true) }
        let content = WidgetNode(
            .stack(
                .vertical,
                [
                    text("turn 1", .privacySensitive), text("late", .accentable),
                    WidgetNode(.image("scene")),
                ]))
        let background = WidgetNode(.image("paper"), marks: .containerBackground)
        #expect(
            try environment().draw(view) == WidgetNode(.stack(.depth, [background, content])))
        #expect(try environment(.systemMedium).draw(view) == text("not available"))
    }

    @Test func whereTheSystemRemovesTheBackgroundItIsNotThere() throws {
        let accented = WidgetDeviceState(renderingMode: .accented)
        let node = try environment(.systemSmall, at: .homeScreen, accented).draw {
            GameStatusView(status: "turn 1")
        }
        let content = WidgetNode(
            .stack(
                .vertical,
                [text("turn 1", .privacySensitive), WidgetNode(.image("flag"))]))
        #expect(node == WidgetNode(.stack(.depth, [content])))
    }

    @Test func buttonsAndTogglesHoldTheIntentAndItsValues() throws {
        let node = try environment().draw {
            HStack {
                TodoItemView(todo: "milk", isComplete: true)
                Button("All", intent: ToggleTodo("*")).invalidatableContent()
            }
        }
        let call = { (task: String) in
            IntentCall(intent: "ToggleTodo", parameters: ["task": .single(task)])
        }
        #expect(
            node
                == WidgetNode(
                    .stack(
                        .horizontal,
                        [
                            WidgetNode(.toggle(true, call("milk"), label: text("milk"))),
                            WidgetNode(
                                .button(call("*"), label: text("All")), marks: .invalidatable),
                        ])))
    }

    @Test func viewsMayDependOnConditionsAndLists() throws {
        let names: [String] = ["a", "b"]
        let missing: String? = nil
        let node = try environment().draw {
            VStack {
                ForEach(names) { Text($0) }
                if let missing { Text(missing) }
                if names.isEmpty { Text("none") } else { EmptyView() }
                Text(Date(timeIntervalSince1970: 0), style: .timer)
            }
        }
        #expect(
            node
                == WidgetNode(
                    .stack(
                        .vertical,
                        [
                            text("a"), text("b"),
                            WidgetNode(.date(Date(timeIntervalSince1970: 0), .timer)),
                        ])))
    }

    @Test(arguments: [
        (0.5, 0.0...1.0, 0.5), (7, 0...10, 0.7), (-1, 0...10, 0), (11, 0...10, 1), (1, 1...1, 0),
        (.nan, 0...1, 0),
    ]) func aGaugeStaysWithinItsBounds(
        value: Double, bounds: ClosedRange<Double>, expected: Double
    ) throws {
        let node = try environment().draw { Gauge(value: value, in: bounds) { Text("health") } }
        #expect(node == WidgetNode(.gauge(expected, label: text("health"))))
    }

    /// What must not be recognised is not in the archive, nor what it would do.
    @Test func whatIsSensitiveIsNotThereWhereItIsHidden() throws {
        let url = try #require(URL(string: "game://secret"))
        let hidden = WidgetDeviceState(
            lock: .lockedWithPasscode,
            sensitiveContent: SensitiveContentSettings(showsOnLockScreen: false))
        let node = try environment(.accessoryRectangular, at: .lockScreen, hidden).draw {
            VStack {
                Text("open")
                VStack {
                    Text("secret")
                    Text("fine").unredacted()
                    Link(destination: url) { Text("secret") }
                }
                .privacySensitive()
                Button(intent: ToggleTodo("secret")) { Text("secret") }.privacySensitive()
                Text("secret").privacySensitive().widgetURL(url)
            }
        }
        #expect(!"\(node)".contains("secret"))
        #expect("\(node)".contains("open") && "\(node)".contains("fine"))
    }

    @Test func aPlaceholderShowsNothingInParticular() throws {
        let node = try environment(.systemSmall, at: .homeScreen, .init(), hasContent: false).draw {
            VStack {
                Text("turn 3")
                Gauge(value: 0.3) { Text("health") }
                Text("Game").unredacted()
            }
        }
        #expect(
            node
                == WidgetNode(
                    .stack(
                        .vertical,
                        [
                            WidgetNode(.redacted), WidgetNode(.redacted),
                            text("Game", .unredacted),
                        ])))
    }
}
