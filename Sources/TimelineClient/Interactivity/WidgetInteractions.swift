import Foundation

/// The buttons and toggles that people use, from a tap to the timeline that follows (article "Adding
/// interactivity to widgets and Live Activities").
///
/// A value without clock: moments come from outside, of a clock that no one sets. It holds only what
/// differs from the archived timelines, and is empty when nothing does.
public struct WidgetInteractions: Sendable {
    /// What to do now.
    public enum Step: Sendable, Equatable {
        /// Run the intent, then report `performed`.
        case perform
        /// Have the widget's timeline built, whatever its budget, then report `rebuilt`.
        case reload
    }

    private struct Key: Hashable {
        let widget: WidgetInfo
        let call: IntentCall
    }

    private struct Control {
        /// `nil` for a button.
        var toggle: ToggleInteraction?
        /// How many of its intents run.
        var performing = 0
        /// When the last one returned: a timeline that was begun before says nothing of it.
        var performedAt = Duration.zero
    }

    private var controls: [Key: Control] = [:]
    private let timeout: Duration

    /// Interactions of which there are none.
    ///
    /// - Parameter timeout: From a tap until a toggle gives up and shows its old state again.
    public init(timeout: Duration = .seconds(30)) {
        self.timeout = timeout
    }

    /// Whether nothing differs from the archived timelines.
    public var isEmpty: Bool { controls.isEmpty }

    /// When `woke(now:)` is to be called; `nil` for never.
    public var deadline: Duration? {
        controls.values.compactMap { $0.toggle?.deadline }.min()
            .map { .seconds($0.timeIntervalSinceReferenceDate) }
    }

    /// Whether a widget waits for a timeline after an interaction: what is marked as invalidatable
    /// looks as if it waits.
    public func isUpdating(_ widget: WidgetInfo) -> Bool {
        controls.contains { key, control in
            key.widget == widget && control.toggle?.isOptimistic ?? true
        }
    }

    /// A person taps a control of a widget that shows `node`.
    ///
    /// - Throws: Why nothing happens.
    public mutating func tap(
        _ call: IntentCall, of widget: WidgetInfo, showing node: WidgetNode,
        in environment: WidgetEnvironment, now: Duration
    ) throws(InteractionRefusal) -> [Step] {
        if let refusal = environment.interactionRefusal { throw refusal }
        guard let shown = node.control(of: call) else { throw .notShown }
        let key = Key(widget: widget, call: call)
        var control = controls[key] ?? Control()
        let steps: [Step]
        switch shown {
        case .toggle(let isOn):
            var toggle =
                control.toggle
                ?? ToggleInteraction(isOn: isOn, timeout: timeout / .seconds(1))
            steps = try toggle.tap(in: environment, now: Self.date(now)).map(Self.step)
            control.toggle = toggle
        case .button:
            steps = [.perform]
        }
        control.performing += steps.count { $0 == .perform }
        controls[key] = control
        return steps
    }

    /// The intent of a control returned, or failed.
    public mutating func performed(
        _ call: IntentCall, of widget: WidgetInfo, failure: String?, now: Duration
    ) -> [Step] {
        let key = Key(widget: widget, call: call)
        // Whatever became of what shows it, an interaction guarantees a reload.
        guard var control = controls[key] else { return [.reload] }
        control.performing -= 1
        control.performedAt = now
        let actions = failure.map { control.toggle?.failed($0) } ?? control.toggle?.performed()
        let steps = actions?.map(Self.step) ?? [.reload]
        control.performing += steps.count { $0 == .perform }
        controls[key] = control
        return steps
    }

    /// A widget has a new timeline, whose build began at `start`; `node` is what it shows now.
    public mutating func rebuilt(_ widget: WidgetInfo, begunAt start: Duration, node: WidgetNode?) {
        for (key, var control) in controls
        where key.widget == widget && start >= control.performedAt {
            if case .toggle(let isOn)? = node?.control(of: key.call) {
                control.toggle?.rebuilt(isOn: isOn)
            } else if control.performing == 0 {
                // It is there no more, and neither is its error.
                control.toggle = nil
            }
            let isOver =
                control.performing == 0
                && control.toggle.map { !$0.isOptimistic && $0.error == nil } ?? true
            controls[key] = isOver ? nil : control
        }
    }

    /// Time has passed.
    ///
    /// - Returns: The widgets whose timeline is to be built.
    public mutating func woke(now: Duration) -> [WidgetInfo] {
        var widgets: [WidgetInfo] = []
        for (key, var control) in controls {
            if let steps = control.toggle?.woke(now: Self.date(now)), !steps.isEmpty {
                widgets.append(key.widget)
                controls[key] = control
            }
        }
        return widgets
    }

    /// Takes what is placed; the others' interactions are over.
    public mutating func place(_ widgets: Set<WidgetInfo>) {
        controls = controls.filter { widgets.contains($0.key.widget) }
    }

    /// What is shown of an archived node: toggles at the state that people expect, and beside those
    /// whose last action had no success the reason.
    public func applied(to node: WidgetNode, of widget: WidgetInfo) -> WidgetNode {
        guard !controls.isEmpty else { return node }
        return node.mapToggles { call, toggle in
            guard let shown = controls[Key(widget: widget, call: call)]?.toggle else {
                return toggle
            }
            let toggle = toggle.toggled(to: shown.isOn)
            guard let error = shown.error else { return toggle }
            return WidgetNode(.stack(.vertical, [toggle, WidgetNode(.text(error))]))
        }
    }

    private static func step(_ action: ToggleInteraction.Action) -> Step {
        switch action {
        case .perform: .perform
        case .reload: .reload
        }
    }

    private static func date(_ moment: Duration) -> Date {
        Date(timeIntervalSinceReferenceDate: moment / .seconds(1))
    }
}
