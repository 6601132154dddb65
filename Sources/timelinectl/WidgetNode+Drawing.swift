import Foundation
import TimelineRuntime

extension WidgetNode {
    private static let gaugeColumns = 10

    /// The node as text. Self-updating dates count from `now`; `toggles` is the look of toggles for
    /// which no nearer style is set.
    func drawing(at now: Date, toggles: WidgetStyle.ToggleLook = .automatic) -> TextBlock {
        let block = content.drawing(
            at: now, style: style, toggles: style.toggleStyle ?? toggles)
        guard marks.contains(.containerBackground) else { return block }
        return .beside([TextBlock("░"), block], gap: 1)
    }

    /// Whether the node is only a ground or a frame for others.
    fileprivate var isDecoration: Bool {
        switch content {
        case .color, .shape: true
        default: false
        }
    }

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
        case .shape(let figure): TextBlock("▢ \(figure.kind.rawValue)")
        case .gauge(let fraction, let label):
            .beside(
                [drawn(label), TextBlock(WidgetNode.bar(min(max(fraction, 0), 1)))],
                gap: 1)
        case .stack(.text, let parts): .beside(parts.map(drawn), gap: 0)
        case .stack(.gaugeLabels, let parts): .beside(parts.map(drawn), gap: 1)
        case .stack(.horizontal, let parts), .stack(.gridRow, let parts):
            .beside(parts.map(drawn), gap: 2, fromBottom: style.alignment == .bottom)
        case .stack(.firstThatFits, let parts): .above(parts.prefix(1).map(drawn))
        case .stack(.depth, let parts) where style[.sizingPart] != nil:
            .above(parts.filter { !$0.isDecoration }.map(drawn))
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
        let seconds = date.timeIntervalSince(now).rounded()
        guard abs(seconds) < Double(Int32.max) else { return date.text }
        let clock = Duration.seconds(abs(seconds)).formatted(.time(pattern: .hourMinuteSecond))
        return switch self {
        case .date: date.formatted(.iso8601.year().month().day())
        case .time: date.formatted(.iso8601.time(includingFractionalSeconds: false))
        case .relative: seconds < 0 ? "\(clock) ago" : "in \(clock)"
        case .offset: (seconds < 0 ? "-" : "+") + clock
        case .timer: clock
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
