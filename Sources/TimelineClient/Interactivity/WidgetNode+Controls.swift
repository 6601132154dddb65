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
        case .button(call, _): return .button
        case .toggle(let isOn, call, _): return .toggle(isOn: isOn)
        case .stack(_, let parts):
            return parts.lazy.compactMap { $0.control(of: call) }.first
        case .button(_, let label), .toggle(_, _, let label), .link(_, let label),
            .gauge(_, let label):
            return label.control(of: call)
        case .text, .date, .image, .spacer, .redacted: return nil
        }
    }

    /// The node with each toggle replaced.
    func mapToggles(_ change: (IntentCall, WidgetNode) -> WidgetNode) -> WidgetNode {
        switch content {
        case .toggle(_, let call, _): return change(call, self)
        case .stack(let axis, let parts):
            var node = self
            node.content = .stack(axis, parts.map { $0.mapToggles(change) })
            return node
        case .link(let url, let label):
            var node = self
            node.content = .link(url, label: label.mapToggles(change))
            return node
        case .button, .gauge, .text, .date, .image, .spacer, .redacted: return self
        }
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

    /// What it is made of.
    private var parts: [WidgetNode] {
        switch content {
        case .stack(_, let parts): parts
        case .button(_, let label), .toggle(_, _, let label), .link(_, let label),
            .gauge(_, let label):
            [label]
        case .text, .date, .image, .spacer, .redacted: []
        }
    }
}
