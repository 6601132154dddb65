import Foundation
import TimelineClient

/// What a terminal can show of a widget.
extension WidgetNode {
    /// One line of text, without backgrounds and images of decoration.
    ///
    /// - Parameter isOn: How a toggle shows, where that is not what the timeline says.
    func line(isOn: (IntentCall) -> Bool? = { _ in nil }) -> String {
        parts(isOn).joined(separator: " · ")
    }

    private func parts(_ isOn: (IntentCall) -> Bool?) -> [String] {
        guard !marks.contains(.containerBackground) else { return [] }
        switch content {
        case .text(let text): return [text]
        case .date(let date, _): return [date.ISO8601Format()]
        case .image(let name): return ["[\(name)]"]
        case .gauge(let fraction, let label):
            return ["\(label.line(isOn: isOn)) \(Int((fraction * 100).rounded())) %"]
        case .stack(_, let children): return children.flatMap { $0.parts(isOn) }
        case .button(_, let label): return ["(\(label.line(isOn: isOn)))"]
        case .toggle(let said, let call, let label):
            return ["\(isOn(call) ?? said ? "☑" : "☐") \(label.line(isOn: isOn))"]
        case .link(_, let label): return ["<\(label.line(isOn: isOn))>"]
        case .redacted: return ["▒▒▒"]
        }
    }

    /// A button or a toggle.
    struct Control {
        let call: IntentCall
        /// What a toggle stands at; `nil` for a button.
        let isOn: Bool?
        let label: String
    }

    /// The buttons and toggles, from the first to the last.
    var controls: [Control] {
        switch content {
        case .stack(_, let children): children.flatMap(\.controls)
        case .button(let call, let label): [Control(call: call, isOn: nil, label: label.line())]
        case .toggle(let isOn, let call, let label):
            [Control(call: call, isOn: isOn, label: label.line())]
        case .text, .date, .image, .gauge, .link, .redacted: []
        }
    }
}
