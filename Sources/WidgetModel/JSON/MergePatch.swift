extension JSONValue {
    /// The value after a merge patch (RFC 7396): members named are replaced, `null` removes.
    public func merging(patch: JSONValue) -> JSONValue {
        guard case .object(let changes) = patch else { return patch }
        var object = objectValue ?? JSONObject()
        for member in changes.members {
            object[member.name] =
                member.value == .null
                ? nil : (object[member.name] ?? .null).merging(patch: member.value)
        }
        return .object(object)
    }
}
