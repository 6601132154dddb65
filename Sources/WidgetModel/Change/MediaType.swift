/// The type and subtype of a `Content-Type` or `Accept` value, without parameters, lower case
/// (RFC 9110 section 8.3.1).
public struct MediaType: Sendable, Hashable {
    /// "application/json".
    public let essence: String

    /// Takes everything before the first semicolon.
    public init(_ text: String) {
        let essence = text.prefix { $0 != ";" }
        self.essence = String(essence.filter { $0 != " " && $0 != "\t" }).lowercased()
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
