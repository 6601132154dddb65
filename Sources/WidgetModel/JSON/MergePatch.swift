extension JSONValue {
    /// Returns the value after a merge patch (RFC 7396): named members are replaced, and `null`
    /// removes a member.
    ///
    /// Takes time linear in the members of both objects, however many the patch removes.
    public func merging(patch: JSONValue) -> JSONValue {
        guard case .object(let changes) = patch else { return patch }
        var object = objectValue ?? JSONObject()
        var hasRemovals = false
        for member in changes.members {
            // Not a single conditional expression: there a bare `nil` would be JSON's null.
            if member.value == .null {
                hasRemovals = true
            } else {
                let old = object[member.name] ?? .null
                object[member.name] = old.merging(patch: member.value)
            }
        }
        if hasRemovals { object.removeAll { changes[$0.name] == .null } }
        return .object(object)
    }
}
