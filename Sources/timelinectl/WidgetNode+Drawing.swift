import Foundation
import TimelineClient

extension WidgetNode {
    private static let gaugeColumns = 10

    /// The node as text.
    ///
    /// - Parameters:
    ///   - now: The time that self-updating dates count from.
    ///   - toggles: The look of toggles where no nearer style is set.
    func drawing(at now: Date, toggles: WidgetStyle.ToggleLook = .automatic) -> TextBlock {
        let block = content.drawing(
            at: now, style: style, toggles: style.toggleStyle ?? toggles)
        guard marks.contains(.containerBackground) else { return block }
        return .beside([TextBlock("░"), block], gap: 1)
    }

    /// Whether the node contains a control that a person could tap.
    var hasControls: Bool {
        switch content {
        case .button, .toggle, .styledToggle: true
        default: parts.contains(where: \.hasControls)
        }
    }

    /// The bar of a gauge.
    fileprivate static func bar(_ fraction: Double) -> String {
        let full = Int((fraction * Double(gaugeColumns)).rounded())
        return String(repeating: "█", count: full)
            + String(repeating: "░", count: gaugeColumns - full)
            + " \(Int((fraction * 100).rounded())) %"
    }
}

extension WidgetNode.Content {
    fileprivate func drawing(
        at now: Date, style: WidgetStyle, toggles: WidgetStyle.ToggleLook
    ) -> TextBlock {
        func drawn(_ node: WidgetNode) -> TextBlock { node.drawing(at: now, toggles: toggles) }
        return switch self {
        case .text(let text): TextBlock(text)
        case .date(let date, let style): TextBlock(style.text(of: date, at: now))
        case .image(let name): TextBlock("[\(name)]")
        case .color(let color): TextBlock("▓ \(color.rawValue)")
        case .gauge(let fraction, let label):
            .beside(
                [drawn(label), TextBlock(WidgetNode.bar(min(max(fraction, 0), 1)))],
                gap: 1)
        case .stack(.horizontal, let parts):
            .beside(parts.map(drawn), gap: 2, fromBottom: style.alignment == .bottom)
        case .stack(_, let parts):
            .above(parts.map(drawn), toTheRight: style.alignment?.isTrailing ?? false)
        case .button(_, let label):
            .beside([TextBlock("("), drawn(label), TextBlock(")")], gap: 1)
        case .toggle(let isOn, _, let label):
            .beside(
                toggles == .switch
                    ? [drawn(label), TextBlock(isOn ? "━●" : "●━")]
                    : [TextBlock(isOn ? "☑" : "☐"), drawn(label)], gap: 1)
        case .styledToggle(let isOn, _, let on, let off): drawn(isOn ? on : off)
        case .link(_, let label):
            .beside([TextBlock("<"), drawn(label), TextBlock(">")], gap: 1)
        case .spacer: TextBlock("")
        case .redacted: TextBlock("▒▒▒▒▒")
        }
    }
}

extension WidgetNode.DateStyle {
    fileprivate func text(of date: Date, at now: Date) -> String {
        switch self {
        case .date: return date.formatted(.iso8601.year().month().day())
        case .time: return date.formatted(.iso8601.time(includingFractionalSeconds: false))
        case .relative, .timer:
            let seconds = abs(date.timeIntervalSince(now)).rounded()
            guard seconds < Double(Int32.max) else { return date.ISO8601Format() }
            let clock = Duration.seconds(seconds).formatted(.time(pattern: .hourMinuteSecond))
            guard self == .relative else { return clock }
            return date < now ? "\(clock) ago" : "in \(clock)"
        }
    }
}

extension WidgetStyle.StackAlignment {
    fileprivate var isTrailing: Bool {
        switch self {
        case .trailing, .topTrailing, .bottomTrailing: true
        default: false
        }
    }
}
