extension JSONValue {
    /// The value after a merge patch (RFC 7396): members named are replaced, `null` removes.
    public func merging(patch: JSONValue) -> JSONValue {
        guard case .object(let changes) = patch else { return patch }
        var object = objectValue ?? JSONObject()
        for member in changes.members {
            // Not one conditional expression: there a bare `nil` would be taken for JSON's null.
            if member.value == .null {
                object[member.name] = nil
            } else {
                let old = object[member.name] ?? .null
                object[member.name] = old.merging(patch: member.value)
            }
        }
        return .object(object)
    }
}
