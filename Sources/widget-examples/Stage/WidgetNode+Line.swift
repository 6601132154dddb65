import Foundation
import TimelineRuntime

/// The content of a widget as text for a terminal.
extension WidgetNode {
    /// Returns one line of text, without backgrounds and decorative images.
    func line() -> String { lineParts.joined(separator: " · ") }

    private var lineParts: [String] {
        guard !marks.contains(.containerBackground) else { return [] }
        switch content {
        case .text(let text): return [text]
        case .date(let date, _): return [date.ISO8601Format()]
        case .image(let name): return ["[\(name)]"]
        case .gauge(let fraction, let label):
            return ["\(label.line()) \(Int((fraction * 100).rounded())) %"]
        case .stack(_, let children): return children.flatMap(\.lineParts)
        case .button(_, let label): return ["(\(label.line()))"]
        case .toggle(let isOn, _, let label): return ["\(isOn ? "☑" : "☐") \(label.line())"]
        case .styledToggle: return parts.flatMap(\.lineParts)
        case .link(_, let label): return ["<\(label.line())>"]
        case .color, .shape, .spacer: return []
        case .redacted: return ["▒▒▒"]
        }
    }

    /// Returns the call of the first button or toggle with this label.
    func call(labelled text: String) -> IntentCall? {
        switch content {
        case .stack(_, let children): children.lazy.compactMap { $0.call(labelled: text) }.first
        case .button(let call, let label), .toggle(_, let call, let label):
            label.line() == text ? call : nil
        case .styledToggle(_, let call, _, _): line().hasSuffix(text) ? call : nil
        case .color, .shape, .text, .date, .image, .gauge, .link, .spacer, .redacted: nil
        }
    }
}
