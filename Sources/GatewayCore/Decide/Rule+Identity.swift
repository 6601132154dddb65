import WidgetModel

extension Rule {
    /// Creates a retired rule from its content. It has no collapse window, because changes do not
    /// match it any more.
    ///
    /// - Returns: `nil` for bytes that are not the content of a rule.
    convenience init?(identity: [UInt8], declared: CatalogPosition, hash: SipHash) {
        guard let parts = try? JSONValue(parsing: identity).arrayValue, parts.count == 6,
            let target = parts[0].integerValue.flatMap({ UInt8(exactly: $0) })
                .flatMap(Target.init(rawValue:)),
            let kind = parts[1].stringValue, let entity = parts[2].stringValue,
            let operations = parts[3].texts, let properties = parts[4].texts,
            let matches = parts[5].arrayValue
        else { return nil }
        var match: [DependencyRule.Match] = []
        var bindings: [Binding] = []
        for element in matches {
            guard let words = element.arrayValue, words.count >= 3,
                let attribute = words[0].stringValue, let text = words[2].stringValue
            else { return nil }
            switch (words[1].stringValue, words.count) {
            case ("literal", 3):
                match.append(.init(attribute: attribute, binding: .literal(text)))
            case ("client", 3):
                match.append(.init(attribute: attribute, binding: .clientAttribute(text)))
                bindings.append(Binding(attribute: attribute, source: .clientAttribute(text)))
            case ("parameter", 4):
                guard let value = words[3].plainParameterValue else { return nil }
                match.append(.init(attribute: attribute, binding: .parameter(text)))
                bindings.append(
                    Binding(
                        attribute: attribute, source: .parameter(name: text, defaultValue: value)))
            default: return nil
            }
        }
        let known = operations.compactMap(Change.Operation.init(rawValue:))
        guard known.count == operations.count else { return nil }
        self.init(
            DependencyRule(
                entity: entity, match: match, properties: properties, operations: Set(known)),
            target: target, kind: kind, collapse: 0, bindings: bindings, identity: identity,
            declared: declared, hash: hash)
    }
}

extension JSONValue {
    /// The elements of an array of strings; `nil` for anything else.
    fileprivate var texts: [String]? {
        guard let elements = arrayValue else { return nil }
        let texts = elements.compactMap(\.stringValue)
        return texts.count == elements.count ? texts : nil
    }

    /// The value that ``ParameterValue/json`` is the form of.
    fileprivate var plainParameterValue: ParameterValue? {
        if case .null = self { return .unset }
        if let text = stringValue { return .single(text) }
        return texts.map { .list($0) }
    }
}
