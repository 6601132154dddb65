import WidgetModel

/// The registration that the gateway has in force, in the form it returns: push tokens are masked.
package struct RegistrationInForce: Sendable {
    private let document: JSONObject

    package var digest: String? { document["digest"]?.stringValue }

    package init(_ document: JSONValue) {
        self.document = document.objectValue ?? JSONObject()
    }

    /// Returns the merge patch (RFC 7396) that adds the members which one process of the app knows
    /// and the gateway lacks; `nil` if it lacks nothing.
    ///
    /// Widgets, sets and activities of kinds that the process does not declare stay unchanged: they
    /// belong to another process. Shared members are only added to, so that no process removes data
    /// of another, such as a push token.
    ///
    /// - Parameters:
    ///   - own: The registration that the process wants in force.
    ///   - kinds: The kinds that the process declares, and the types of its activities.
    ///   - includesShared: Whether to register shared members too. Two processes that disagree on
    ///     them would alternate forever, so each does it only once.
    package func patch(
        to own: ClientRegistration, kinds: Set<String>, includesShared: Bool
    ) -> JSONValue? {
        let whole = own.json(maskingTokens: false).objectValue ?? JSONObject()
        let masked = own.json(maskingTokens: true).objectValue ?? JSONObject()
        var patch = JSONObject()
        for member in ["widgets", "recommendations", "activities", "activityStarts"] {
            let wanted = whole[member]?.arrayValue ?? []
            let shown = masked[member]?.arrayValue ?? []
            let declared = kinds.union(wanted.compactMap(Self.kind))
            let inForce = (document[member]?.arrayValue ?? []).map(Self.withoutBuiltAt)
            let isOwn = { (element: JSONValue) in
                Self.kind(element).map { declared.contains($0) } ?? false
            }
            guard Self.content(inForce.filter(isOwn)) != Self.content(shown) else { continue }
            // A token is shown masked, and cannot be registered again.
            let others = inForce.filter { !isOwn($0) && $0.objectValue?["delivery"] == nil }
            patch[member] = .array(others + wanted)
        }
        if includesShared {
            for member in ["platform", "osVersion"] {
                guard let wanted = whole[member], document[member] != wanted else { continue }
                patch[member] = wanted
            }
            for member in ["controls", "delivery"] {
                let inForce = document[member]?.arrayValue ?? []
                let wanted = masked[member]?.arrayValue ?? []
                if !wanted.allSatisfy(inForce.contains) { patch[member] = whole[member] }
            }
            let attributes = document["attributes"]?.objectValue
            for attribute in whole["attributes"]?.objectValue?.members ?? []
            where attributes?[attribute.name] != attribute.value {
                patch["attributes"] = whole["attributes"]
            }
        }
        return patch.members.isEmpty ? nil : .object(patch)
    }

    private static func kind(_ element: JSONValue) -> String? {
        let object = element.objectValue
        return (object?["kind"] ?? object?["type"])?.stringValue
    }

    /// The cursor at which a set was built changes with every acknowledgement.
    private static func withoutBuiltAt(_ element: JSONValue) -> JSONValue {
        guard var object = element.objectValue else { return element }
        object["builtAt"] = nil
        return .object(object)
    }

    private static func content(_ elements: [JSONValue]) -> [[UInt8]] {
        elements.map { withoutBuiltAt($0).serialized }.sorted { $0.lexicographicallyPrecedes($1) }
    }
}

extension ClientRegistration {
    /// Returns the merge patch (RFC 7396) from `last`, which the app's process registered, to this.
    /// It contains only members that differ, because others belong to other processes.
    ///
    /// - Parameter complete: This registration with the shared members of other processes added.
    package func patch(
        since last: ClientRegistration, completed complete: ClientRegistration
    ) -> JSONValue {
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
        if activities != last.activities { name("activities") }
        if activityStarts != last.activityStarts { name("activityStarts") }
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
