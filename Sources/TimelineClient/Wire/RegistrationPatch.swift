import WidgetModel

extension ClientRegistration {
    /// The merge patch (RFC 7396) that makes `last`, as the app's process registered it, this: only
    /// members that differ, for others belong to other processes.
    ///
    /// - Parameter complete: This with what the others know, for members that are shared.
    func patch(since last: ClientRegistration, completed complete: ClientRegistration) -> JSONValue
    {
        let document = complete.json(maskingTokens: false).objectValue ?? JSONObject()
        var patch = JSONObject()
        func name(_ member: String) { patch[member] = document[member] ?? .null }
        if platform != last.platform { name("platform") }
        if osVersion != last.osVersion { name("osVersion") }
        if widgets != last.widgets { name("widgets") }
        // With what they were built at, also where they did not change.
        if recommendations != last.recommendations { name("recommendations") }
        if controls != last.controls { name("controls") }
        if delivery != last.delivery { name("delivery") }
        if attributes != last.attributes {
            var changed = document["attributes"]?.objectValue ?? JSONObject()
            // What is not named stays: what is gone has to be named.
            for attribute in last.attributes.keys.sorted() where attributes[attribute] == nil {
                changed[attribute] = JSONValue.null
            }
            patch["attributes"] = .object(changed)
        }
        return .object(patch)
    }
}
