/// The type and subtype of a `Content-Type` or `Accept` value, without parameters, lower case
/// (RFC 9110 section 8.3.1).
public struct MediaType: Sendable, Hashable {
    /// The type and subtype, such as "application/json".
    public let essence: String

    /// Reads everything before the first semicolon.
    public init(_ text: String) {
        var text = text
        // Sound: the pointer is read within the closure that lends it.
        let isPlain = text.withUTF8 {
            $0.allSatisfy {
                ($0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "z"))
                    || ($0 >= UInt8(ascii: "+") && $0 <= UInt8(ascii: "9"))
            }
        }
        if isPlain {
            essence = text
            return
        }
        var essence: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: ";"):
                self.essence = String(decoding: essence, as: UTF8.self)
                return
            case UInt8(ascii: " "), UInt8(ascii: "\t"): break
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): essence.append(byte | 0x20)
            default: essence.append(byte)
            }
        }
        self.essence = String(decoding: essence, as: UTF8.self)
    }

    /// Whether the content is JSON: `application/json`, `text/json` or any `+json`.
    public var isJSON: Bool {
        essence == "application/json" || essence == "text/json" || essence.hasSuffix("+json")
    }

    /// Whether the content is YAML (RFC 9512 and the names used before it).
    public var isYAML: Bool {
        [
            "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml",
            "text/vnd.yaml",
        ].contains(essence) || essence.hasSuffix("+yaml")
    }
}
