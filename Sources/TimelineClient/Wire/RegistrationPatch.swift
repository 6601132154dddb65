import WidgetModel

extension ClientRegistration {
    /// Returns the merge patch (RFC 7396) from `last`, which the app's process registered, to this.
    /// It contains only members that differ, because others belong to other processes.
    ///
    /// - Parameter complete: This registration with the shared members of other processes added.
    func patch(since last: ClientRegistration, completed complete: ClientRegistration) -> JSONValue
    {
        let document = complete.json(maskingTokens: false).objectValue ?? JSONObject()
        var patch = JSONObject()
        func name(_ member: String) { patch[member] = document[member] ?? .null }
        if platform != last.platform { name("platform") }
        if osVersion != last.osVersion { name("osVersion") }
        if widgets != last.widgets { name("widgets") }
        // Includes the cursors of all sets, also of those that did not change.
        if recommendations != last.recommendations { name("recommendations") }
        if controls != last.controls { name("controls") }
        if delivery != last.delivery { name("delivery") }
        if attributes != last.attributes {
            var changed = document["attributes"]?.objectValue ?? JSONObject()
            // A merge patch keeps members that it does not name, so removed attributes are set to
            // null.
            for attribute in last.attributes.keys.sorted() where attributes[attribute] == nil {
                changed[attribute] = JSONValue.null
            }
            patch["attributes"] = .object(changed)
        }
        return .object(patch)
    }
}
