import WidgetModel

/// The format in which an archive stores a node's style.
extension WidgetStyle {
    /// The style as JSON. Equal styles encode to equal bytes, and a style without values to an
    /// empty object.
    var json: JSONObject {
        var object = JSONObject()
        if let font {
            var own = JSONObject()
            own["style"] = font.textStyle.map { .string($0.rawValue) }
            own["size"] = font.size.map { .number($0) }
            own["weight"] = font.weight.map { .string($0.rawValue) }
            object["font"] = .object(own)
        }
        object["foreground"] = foreground.map { .string($0.rawValue) }
        object["tint"] = tint.map { .string($0.rawValue) }
        object["padding"] = padding.map {
            .array([$0.top, $0.leading, $0.bottom, $0.trailing].map { .number($0) })
        }
        object["alignment"] = alignment.map { .string($0.rawValue) }
        object["spacing"] = spacing.map { .number($0) }
        object["buttons"] = buttonStyle.map { .string($0.rawValue) }
        object["toggles"] = toggleStyle.map { .string($0.rawValue) }
        return object
    }

    /// Reads a style. Returns `nil` when any part of it is malformed.
    init?(_ json: JSONValue) {
        guard let object = json.objectValue else { return nil }
        for member in object.members {
            let text = member.value.stringValue
            switch member.name {
            case "font":
                guard let read = Font(member.value) else { return nil }
                font = read
            case "foreground":
                guard let text else { return nil }
                foreground = Color(text)
            case "tint":
                guard let text else { return nil }
                tint = Color(text)
            case "padding":
                let lengths = (member.value.arrayValue ?? []).compactMap(\.numberValue)
                guard lengths.count == 4 else { return nil }
                padding = EdgeInsets(
                    top: lengths[0], leading: lengths[1], bottom: lengths[2], trailing: lengths[3])
            case "alignment":
                guard let read = text.flatMap(StackAlignment.init) else { return nil }
                alignment = read
            case "spacing":
                guard let read = member.value.numberValue else { return nil }
                spacing = read
            case "buttons":
                guard let read = text.flatMap(ButtonLook.init) else { return nil }
                buttonStyle = read
            case "toggles":
                guard let read = text.flatMap(ToggleLook.init) else { return nil }
                toggleStyle = read
            default: return nil
            }
        }
    }
}

extension Font {
    fileprivate init?(_ json: JSONValue) {
        guard let object = json.objectValue else { return nil }
        self.init(
            object["style"]?.stringValue.flatMap(TextStyle.init),
            size: object["size"]?.numberValue,
            weight: object["weight"]?.stringValue.flatMap(Weight.init))
    }
}
