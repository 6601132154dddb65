import Foundation
import WidgetViews

/// The pending interactions with buttons and toggles, each from a tap to the timeline that follows
/// (article "Adding interactivity to widgets and Live Activities").
///
/// It has no clock: the caller passes the time, on a clock that cannot be set. It holds only
/// differences from the archived timelines, and is empty when there are none.
public struct PendingInteractions: Sendable {
    /// An order to the caller.
    public enum Step: Sendable, Equatable {
        /// Run the intent, then call `performed`.
        case perform
        /// Build the widget's timeline regardless of its budget, then call `rebuilt`.
        case reload
    }

    private struct Key: Hashable {
        let widget: WidgetInfo
        let call: IntentCall
    }

    private struct Control {
        /// The toggle's state; `nil` for a button.
        var toggle: ToggleInteraction?
        /// The number of its intents in progress.
        var performing = 0
        /// The time at which the last intent returned. A timeline begun earlier may not include its
        /// effect.
        var performedAt = Duration.zero
    }

    private var controls: [Key: Control] = [:]
    private let timeout: Duration

    /// Creates a value without interactions.
    ///
    /// - Parameter timeout: The time from a tap until a toggle reverts.
    public init(timeout: Duration = .seconds(30)) {
        self.timeout = timeout
    }

    /// Whether nothing differs from the archived timelines.
    public var isEmpty: Bool { controls.isEmpty }

    /// The time at which to call `woke(now:)`; `nil` for never.
    public var deadline: Duration? {
        controls.values.compactMap { $0.toggle?.deadline }.min()
            .map { .seconds($0.timeIntervalSinceReferenceDate) }
    }

    /// Returns whether a widget awaits a timeline after an interaction. Content marked as
    /// invalidatable looks pending meanwhile.
    public func isUpdating(_ widget: WidgetInfo) -> Bool {
        controls.contains { key, control in
            key.widget == widget && control.toggle?.isOptimistic ?? true
        }
    }

    /// Handles a tap on a control of a widget that shows `node`.
    ///
    /// - Throws: The reason why the tap is refused.
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

    /// Records that the intent of a control returned, or failed.
    public mutating func performed(
        _ call: IntentCall, of widget: WidgetInfo, failure: String?, now: Duration
    ) -> [Step] {
        let key = Key(widget: widget, call: call)
        // An interaction guarantees a reload, even if its control no longer exists.
        guard var control = controls[key] else { return [.reload] }
        control.performing -= 1
        control.performedAt = now
        let actions = failure.map { control.toggle?.failed($0) } ?? control.toggle?.performed()
        let steps = actions?.map(Self.step) ?? [.reload]
        control.performing += steps.count { $0 == .perform }
        controls[key] = control
        return steps
    }

    /// Records a new timeline of a widget, whose build began at `start`; `node` is its current
    /// content.
    public mutating func rebuilt(_ widget: WidgetInfo, begunAt start: Duration, node: WidgetNode?) {
        for (key, var control) in controls
        where key.widget == widget && start >= control.performedAt {
            if case .toggle(let isOn)? = node?.control(of: key.call) {
                control.toggle?.rebuilt(isOn: isOn)
            } else if control.performing == 0 {
                // The toggle is no longer shown, so its error is not shown either.
                control.toggle = nil
            }
            let isOver =
                control.performing == 0
                && control.toggle.map { !$0.isOptimistic && $0.error == nil } ?? true
            controls[key] = isOver ? nil : control
        }
    }

    /// Reverts the toggles whose deadline has passed.
    ///
    /// - Returns: The widgets whose timelines must be built.
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

    /// Replaces the placed widgets, and drops the interactions of all others.
    public mutating func place(_ widgets: Set<WidgetInfo>) {
        controls = controls.filter { widgets.contains($0.key.widget) }
    }

    /// Returns an archived node with pending interactions applied: toggles in the expected state,
    /// and the reason next to each toggle whose last action failed.
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

/// The content of a widget at one point in time.
public struct ShownWidget: Sendable, Equatable {
    /// The content of the widget.
    public var node: WidgetNode
    /// Whether the widget awaits its timeline after an interaction. Content marked as invalidatable
    /// looks pending meanwhile.
    public var isUpdating: Bool
}
