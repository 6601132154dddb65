import Foundation
import WidgetViews

extension WidgetNode {
    enum ControlState: Equatable {
        case button
        case toggle(isOn: Bool)
    }

    /// The calls of all buttons and toggles, in the order in which they are shown.
    package var calls: [IntentCall] {
        switch content {
        case .button(let call, _), .toggle(_, let call, _), .styledToggle(_, let call, _, _):
            [call]
        default: parts.flatMap(\.calls)
        }
    }

    /// Returns the first control that performs this call; `nil` when there is none.
    func control(of call: IntentCall) -> ControlState? {
        switch content {
        case .button(call, _): .button
        case .toggle(let isOn, call, _), .styledToggle(let isOn, call, _, _):
            .toggle(isOn: isOn)
        default: parts.lazy.compactMap { $0.control(of: call) }.first
        }
    }

    func mapToggles(_ change: (IntentCall, WidgetNode) -> WidgetNode) -> WidgetNode {
        switch content {
        case .toggle(_, let call, _), .styledToggle(_, let call, _, _): return change(call, self)
        case .stack(let axis, let parts):
            var node = self
            node.content = .stack(axis, parts.map { $0.mapToggles(change) })
            return node
        case .link(let url, let label):
            var node = self
            node.content = .link(url, label: label.mapToggles(change))
            return node
        case .button, .gauge, .text, .date, .image, .color, .shape, .spacer, .redacted: return self
        }
    }

    /// Returns a toggle in this state; returns any other node unchanged.
    func toggled(to isOn: Bool) -> WidgetNode {
        var node = self
        switch content {
        case .toggle(_, let call, let label): node.content = .toggle(isOn, call, label: label)
        case .styledToggle(_, let call, let on, let off):
            node.content = .styledToggle(isOn, call, on: on, off: off)
        default: break
        }
        return node
    }

    /// The URL that the app opens when the widget is tapped: the outermost `widgetURL`, or the
    /// first of several at the same depth; `nil` when there is none. The articles do not say which
    /// of several counts.
    public var outermostWidgetURL: String? {
        var level = [self]
        while !level.isEmpty {
            if let url = level.lazy.compactMap(\.widgetURL).first { return url }
            level = level.flatMap(\.parts)
        }
        return nil
    }

    func hasLink(to url: URL) -> Bool {
        if case .link(url.absoluteString, _) = content { return true }
        return parts.contains { $0.hasLink(to: url) }
    }
}
