import Foundation
import WidgetModel

/// The format in which an archive stores a widget's content.
extension WidgetNode {
    /// The node as JSON. Equal nodes encode to equal bytes.
    package var json: JSONValue {
        var object = content.json
        let names = Self.markNames.filter { marks.contains($0.mark) }.map(\.name)
        if !names.isEmpty { object["marks"] = .array(names.map { .string($0) }) }
        let style = style.json
        if !style.members.isEmpty { object["look"] = .object(style) }
        if let widgetURL { object["widgetURL"] = .string(widgetURL) }
        return .object(object)
    }

    /// Reads a node. Returns `nil` when any part of it is malformed. The JSON parser limits the
    /// depth.
    package init?(_ json: JSONValue) {
        guard let object = json.objectValue, let content = Content(object) else { return nil }
        var marks: Marks = []
        for name in object["marks"]?.arrayValue ?? [] {
            guard let known = Self.markNames.first(where: { $0.name == name.stringValue }) else {
                return nil
            }
            marks.formUnion(known.mark)
        }
        var style = WidgetStyle()
        if let look = object["look"] {
            guard let read = WidgetStyle(look) else { return nil }
            style = read
        }
        self.init(
            content, marks: marks, widgetURL: object["widgetURL"]?.stringValue, style: style)
    }

    private static let markNames: [(name: String, mark: Marks)] = [
        ("privacySensitive", .privacySensitive), ("unredacted", .unredacted),
        ("accentable", .accentable), ("containerBackground", .containerBackground),
        ("invalidatable", .invalidatable), ("invalidated", .invalidated),
    ]
}

extension WidgetNode.Content {
    fileprivate var json: JSONObject {
        switch self {
        case .text(let text): ["text": .string(text)]
        case .date(let date, let style):
            ["date": .number(date.timeIntervalSince1970), "style": .string(style.rawValue)]
        case .image(let name): ["image": .string(name)]
        case .color(let color): ["color": .string(color.rawValue)]
        case .shape(let figure): ["shape": (try? JSONValue(encoding: figure)) ?? .null]
        case .gauge(let fraction, let label): ["gauge": .number(fraction), "label": label.json]
        case .stack(let axis, let parts):
            ["stack": .string(axis.rawValue), "parts": .array(parts.map(\.json))]
        case .button(let call, let label): ["button": call.json, "label": label.json]
        case .toggle(let isOn, let call, let label):
            ["toggle": call.json, "isOn": .bool(isOn), "label": label.json]
        case .styledToggle(let isOn, let call, let on, let off):
            ["styledToggle": call.json, "isOn": .bool(isOn), "on": on.json, "off": off.json]
        case .link(let url, let label): ["link": .string(url), "label": label.json]
        case .spacer: ["spacer": true]
        case .redacted: ["redacted": true]
        }
    }

    /// Reads the content whose kind is the name of the object's first member.
    fileprivate init?(_ object: JSONObject) {
        guard let kind = object.members.first else { return nil }
        let value = kind.value
        let text = value.stringValue
        func node(_ name: String) -> WidgetNode? { object[name].flatMap { WidgetNode($0) } }
        switch kind.name {
        case "text": self.init(text) { .text($0) }
        case "image": self.init(text) { .image($0) }
        case "color": self.init(text) { .color(Color($0)) }
        case "shape":
            guard let figure = try? Figure(decoding: value), figure.isWhole else { return nil }
            self = .shape(figure)
        case "redacted": self = .redacted
        case "spacer": self = .spacer
        case "date":
            guard let seconds = value.numberValue,
                let style = object["style"]?.stringValue.flatMap(WidgetNode.DateStyle.init)
            else { return nil }
            self = .date(Date(timeIntervalSince1970: seconds), style)
        case "gauge":
            guard let fraction = value.numberValue, let label = node("label") else { return nil }
            // Also what an archive states must be a part of the whole.
            self = .gauge(clamped(fraction), label: label)
        case "stack":
            guard let axis = text.flatMap(WidgetNode.Axis.init),
                let parts = object["parts"]?.arrayValue
            else { return nil }
            let nodes = parts.compactMap { WidgetNode($0) }
            guard nodes.count == parts.count else { return nil }
            self = .stack(axis, nodes)
        case "button":
            guard let call = IntentCall(value), let label = node("label") else { return nil }
            self = .button(call, label: label)
        case "toggle":
            guard let call = IntentCall(value), let isOn = object["isOn"]?.boolValue,
                let label = node("label")
            else { return nil }
            self = .toggle(isOn, call, label: label)
        case "styledToggle":
            guard let call = IntentCall(value), let isOn = object["isOn"]?.boolValue,
                let on = node("on"), let off = node("off")
            else { return nil }
            self = .styledToggle(isOn, call, on: on, off: off)
        case "link":
            guard let text, let label = node("label") else { return nil }
            self = .link(text, label: label)
        default: return nil
        }
    }

    private init?<Value>(_ value: Value?, _ make: (Value) -> Self) {
        guard let value else { return nil }
        self = make(value)
    }
}

/// The format in which an intent call is archived and passed between processes.
extension IntentCall {
    /// The call as JSON. Equal calls encode to equal bytes.
    public var json: JSONValue {
        ["intent": .string(intent), "parameters": parametersObject(parameters)]
    }

    /// Reads the format that ``json`` writes. Returns `nil` for anything else.
    public init?(_ json: JSONValue) {
        guard let object = json.objectValue, let intent = object["intent"]?.stringValue,
            let parameters = object["parameters"].flatMap(parametersRead)
        else { return nil }
        self.init(intent: intent, parameters: parameters)
    }
}

/// Reads the format that ``parametersObject(_:)`` writes. Returns `nil` for anything else.
package func parametersRead(_ json: JSONValue) -> [String: ParameterValue]? {
    guard let members = json.objectValue?.members else { return nil }
    var parameters: [String: ParameterValue] = [:]
    for member in members {
        switch member.value {
        case .null: parameters[member.name] = .unset
        case .string(let text): parameters[member.name] = .single(text)
        case .array(let elements):
            let texts = elements.compactMap(\.stringValue)
            guard texts.count == elements.count else { return nil }
            parameters[member.name] = .list(texts)
        case .bool, .integer, .number, .object: return nil
        }
    }
    return parameters
}
