import WidgetModel

extension ActivityDeclaration {
    init?(_ value: JSONValue, at place: String, in scope: RuleScope, _ faults: inout Faults) {
        let limits = scope.limits
        guard var reader = MemberReader(value, at: place, &faults) else { return nil }
        let type = reader.string("type", required: true, limit: limits.stringBytesMax, &faults)
        let attributes = reader.strings(
            "attributes", limit: limits.stringBytesMax, countMax: limits.attributesMax, &faults)
        for (index, name) in attributes.enumerated() {
            let place = "\(reader.path("attributes"))[\(index)]"
            if name.hasPrefix("client.") { faults.add(place, "must not start with `client.`") }
            if attributes[..<index].contains(name) { faults.add(place, "is declared twice") }
        }
        let intent = IntentDeclaration(
            title: nil,
            parameters: attributes.map {
                ParameterDeclaration(
                    name: $0, title: nil, type: ParameterType("String"), defaultValue: .unset)
            })
        let dependsOn = DependencyRule.list(&reader, of: intent, in: scope, &faults)
        let content = reader.required("content", &faults).flatMap {
            ContentSource($0, at: reader.path("content"), &faults)
        }
        reader.refuseUnknown(&faults)
        guard let type, let content else { return nil }
        self.init(
            type: type, attributes: attributes, dependsOn: dependsOn, content: content,
            intent: intent)
    }
}

extension ContentSource {
    /// The limit of an address, as of that of a webhook.
    private static let urlBytesMax = 2048

    init?(_ value: JSONValue, at place: String, _ faults: inout Faults) {
        guard var reader = MemberReader(value, at: place, &faults) else { return nil }
        let url = reader.string("url", required: true, limit: Self.urlBytesMax, &faults)
        if let url, !url.hasPrefix("https://") {
            faults.add(reader.path("url"), "must be an https URL")
        }
        let shared = reader.value("shared")
        if let shared, shared.boolValue == nil {
            faults.add(reader.path("shared"), "must be true or false, not \(shared.shape)")
        }
        reader.refuseUnknown(&faults)
        guard let url else { return nil }
        self.init(url: url, isShared: shared?.boolValue ?? false)
    }
}
