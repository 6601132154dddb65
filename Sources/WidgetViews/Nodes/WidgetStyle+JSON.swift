import WidgetModel

/// The format in which an archive stores a node's style.
extension WidgetStyle {
    /// The style as JSON. Equal styles encode to equal bytes, and a style without values to an
    /// empty object.
    var json: JSONObject {
        var object = JSONObject()
        func write(_ name: String, _ part: (some Encodable)?) {
            object[name] = part.flatMap { try? JSONValue(encoding: $0) }
        }
        write("font", font)
        write("foreground", foreground)
        write("shading", shading)
        write("tint", tint)
        write("padding", padding)
        write("alignment", alignment)
        write("spacing", spacing)
        write("buttons", buttonStyle)
        write("toggles", toggleStyle)
        for attribute in Attribute.allCases {
            object[attribute.rawValue] = attributes[attribute]?.json
        }
        return object
    }

    /// Reads a style. Returns `nil` when any part of it is malformed; a member that this version
    /// does not know is ignored.
    init?(_ json: JSONValue) {
        guard let object = json.objectValue else { return nil }
        var isMalformed = false
        func read<Part: Decodable>(_ name: String) -> Part? {
            guard let value = object[name] else { return nil }
            let part = try? Part(decoding: value)
            if part == nil { isMalformed = true }
            return part
        }
        font = read("font")
        foreground = read("foreground")
        shading = read("shading")
        tint = read("tint")
        padding = read("padding")
        alignment = read("alignment")
        spacing = read("spacing")
        buttonStyle = read("buttons")
        toggleStyle = read("toggles")
        for member in object.members {
            guard let attribute = Attribute(rawValue: member.name) else { continue }
            guard let value = Value(member.value) else { return nil }
            attributes[attribute] = value
        }
        if isMalformed || shading?.isWhole == false { return nil }
    }
}
