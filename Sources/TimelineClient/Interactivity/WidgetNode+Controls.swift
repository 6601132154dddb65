import Foundation

extension WidgetNode {
    /// What people can use.
    enum ControlState: Equatable {
        case button
        case toggle(isOn: Bool)
    }

    /// The first control that performs this call; `nil` when none does.
    func control(of call: IntentCall) -> ControlState? {
        switch content {
        case .button(call, _): .button
        case .toggle(let isOn, call, _), .styledToggle(let isOn, call, _, _):
            .toggle(isOn: isOn)
        default: parts.lazy.compactMap { $0.control(of: call) }.first
        }
    }

    /// The node with each toggle replaced.
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
        case .button, .gauge, .text, .date, .image, .color, .spacer, .redacted: return self
        }
    }

    /// A toggle in this state; any other node as it is.
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

    /// What the app opens when the widget is tapped: the outermost `widgetURL` in it, and of several
    /// equally far out the first; `nil` when there is none. The articles leave open which of several
    /// counts.
    public var outermostWidgetURL: String? {
        var level = [self]
        while !level.isEmpty {
            if let url = level.lazy.compactMap(\.widgetURL).first { return url }
            level = level.flatMap(\.parts)
        }
        return nil
    }

    /// Whether there is a link to this URL in it.
    func hasLink(to url: URL) -> Bool {
        if case .link(url.absoluteString, _) = content { return true }
        return parts.contains { $0.hasLink(to: url) }
    }
}
