import WidgetModel

/// What a rule makes stale.
package enum Target: UInt8, Sendable, Hashable {
    /// The timelines of a kind's widgets.
    case timeline
    /// A kind's recommendation set.
    case recommendations
    /// A kind's relevance.
    case relevance
    /// The placed controls of a kind.
    case control
}

/// One dependency rule of a catalog, ready to decide with.
///
/// A rule is identified by its content, defaults included, never by its place: a catalog that
/// repeats it keeps its versions. Immutable, and a class so that handing it on copies nothing.
package final class Rule: Sendable {
    /// What it makes stale.
    package let target: Target
    /// The kind it belongs to.
    package let kind: String
    /// The declaration.
    package let declaration: DependencyRule
    /// The sequence of the catalog that first declared it, without interruption since.
    package let since: UInt64
    /// The content in words that differ exactly when the content does.
    package let identity: [UInt8]
    /// The bindings that have a position in this rule's keys: all but literals.
    package let bindings: [Binding]
    /// At most one notification per key in this time, in milliseconds.
    package let collapse: Int64

    private let hash: SipHash
    /// Has absorbed the hash of the identity: every key of the rule is hashed from here.
    private let hashState: SipHash.State
    private let operations: UInt8
    /// The properties of interest where they are many; few are sooner compared than hashed.
    private let properties: Set<String>?
    /// The key of a widget that leaves every parameter unset.
    private let unsetKey: BoundValues
    /// For each binding the parameter's name, if it binds to one.
    private let parameterNames: [String?]
    private let literals: [(attribute: String, value: String)]

    /// A binding whose value differs from widget to widget.
    package struct Binding: Sendable, Hashable {
        /// The change's attribute; `id` is its id.
        package let attribute: String
        /// Where the client's side comes from.
        package let source: Source

        /// Where the client's side of a binding comes from.
        package enum Source: Sendable, Hashable {
            /// An intent parameter, and what stands for it when it is unset.
            case parameter(name: String, defaultValue: ParameterValue)
            /// An attribute of the client.
            case clientAttribute(String)
        }

        /// Whether a widget that leaves this binding's parameter unset agrees with `values`.
        func agreesUnset(with values: some Collection<String>) -> Bool {
            guard case .parameter(_, let defaultValue) = source else { return false }
            guard defaultValue != .unset else { return true }
            return defaultValue.texts.contains { text in
                values.contains(where: text.hasSameBytes)
            }
        }
    }

    init(
        _ declaration: DependencyRule, target: Target, widget: WidgetDeclaration,
        intent: IntentDeclaration?, since: UInt64, hash: SipHash
    ) {
        self.declaration = declaration
        self.target = target
        self.since = since
        self.hash = hash
        kind = widget.kind
        collapse = widget.collapseMilliseconds
        properties = declaration.properties.count > 8 ? Set(declaration.properties) : nil
        operations = declaration.operations.reduce(0) { $0 | $1.bit }
        var bindings: [Binding] = []
        var literals: [(String, String)] = []
        for match in declaration.match {
            switch match.binding {
            case .literal(let text):
                literals.append((match.attribute, text))
            case .parameter(let name):
                let value = intent?.parameter(name)?.defaultValue ?? .unset
                bindings.append(
                    Binding(
                        attribute: match.attribute,
                        source: .parameter(name: name, defaultValue: value)))
            case .clientAttribute(let name):
                bindings.append(
                    Binding(attribute: match.attribute, source: .clientAttribute(name)))
            }
        }
        self.bindings = bindings
        parameterNames = bindings.map {
            if case .parameter(let name, _) = $0.source { name } else { nil }
        }
        self.literals = literals
        identity = Self.identity(declaration, target, kind, bindings)
        hashState = hash.absorbing(hash(identity))
        let unset = [UInt8](repeating: 1, count: bindings.count)
        unsetKey = BoundValues(bytes: unset, hash: hash.hash(unset, after: hashState))
    }

    /// The rule's content as JSON: an encoding in which no two contents share a text.
    private static func identity(
        _ declaration: DependencyRule, _ target: Target, _ kind: String, _ bindings: [Binding]
    ) -> [UInt8] {
        let operations = declaration.operations.map(\.rawValue).sorted()
        let match = declaration.match.map { match -> JSONValue in
            switch match.binding {
            case .literal(let text):
                return [.string(match.attribute), "literal", .string(text)]
            case .clientAttribute(let name):
                return [.string(match.attribute), "client", .string(name)]
            case .parameter(let name):
                let source = bindings.first { $0.attribute == match.attribute }?.source
                guard case .parameter(_, let value) = source else { return nil }
                return [.string(match.attribute), "parameter", .string(name), value.json]
            }
        }
        let content: JSONValue = [
            .integer(Int64(target.rawValue)), .string(kind), .string(declaration.entity),
            .array(operations.map { .string($0) }),
            .array(declaration.properties.map { .string($0) }), .array(match),
        ]
        return content.serialized
    }

    /// The keyed hash of one of this rule's keys.
    func keyHash(_ bytes: [UInt8]) -> UInt64 {
        hash.hash(bytes, after: hashState)
    }

    /// Why a change does not hit this rule, or that it does.
    package enum Verdict: Sendable, Equatable {
        /// It hits; by which keys, ``keys(of:)`` tells.
        case hit
        /// It is about another entity.
        case otherEntity
        /// Its operation is not listed.
        case operationNotListed
        /// None of its properties is listed.
        case propertiesNotListed
        /// It has another value than the literal bound to this attribute.
        case literalDiffers(attribute: String)
    }

    /// Compares all but the positions, which differ from widget to widget.
    package func verdict(on change: Change) -> Verdict {
        guard change.entity == declaration.entity else { return .otherEntity }
        guard operations & change.operation.bit != 0 else { return .operationNotListed }
        if change.operation == .update, !declaration.properties.isEmpty,
            !change.properties.isEmpty, !change.properties.contains(where: isOfInterest)
        {
            return .propertiesNotListed
        }
        for literal in literals {
            if let values = change.values(of: literal.attribute),
                !values.contains(where: literal.value.hasSameBytes)
            {
                return .literalDiffers(attribute: literal.attribute)
            }
        }
        return .hit
    }

    private func isOfInterest(_ property: String) -> Bool {
        properties?.contains(property) ?? declaration.properties.contains(property)
    }

    /// Of a change that hits this rule: how many combinations of values it has at the rule's
    /// positions, and whether it hits for lack of an attribute.
    func shape(of change: Change) -> (combinations: Int, isBroad: Bool) {
        var (combinations, isBroad) = (1, false)
        for binding in bindings {
            guard let count = change.valueCount(of: binding.attribute) else {
                isBroad = true
                continue
            }
            let (product, overflow) = combinations.multipliedReportingOverflow(by: count)
            combinations = overflow ? Int.max : product
        }
        for literal in literals where change.valueCount(of: literal.attribute) == nil {
            isBroad = true
        }
        return (combinations, isBroad)
    }

    /// Calls `body` with the keys a change raises: at each position every value it has, and
    /// `unset` beside them for a parameter without default or with one among them; or `missing`
    /// when it lacks the attribute.
    func visitKeys(of change: Change, _ body: (BoundValues) -> Void) {
        if bindings.count == 1, bindings[0].attribute == "id", let id = change.id {
            // As nearly all rules and changes are: what is the same for all is not made anew.
            body(BoundValues(rule: self, bytes: BoundValues.encoded(.value(id), after: [])))
            if bindings[0].agreesUnset(with: CollectionOfOne(id)) { body(unsetKey) }
            return
        }
        BoundValues.visitCombinations(of: bindings.count) { place in
            let binding = bindings[place]
            if binding.attribute == "id", let id = change.id {
                return .one(.value(id), orUnset: binding.agreesUnset(with: CollectionOfOne(id)))
            }
            guard let values = change.values(of: binding.attribute) else { return .one(.missing) }
            return .each(values, orUnset: binding.agreesUnset(with: values))
        } _: { bytes in
            body(BoundValues(rule: self, bytes: bytes))
        }
    }

    /// The name by which a notification calls one of this rule's keys.
    package func name(of values: BoundValues) -> StaleName {
        guard target == .timeline else { return StaleName(target, kind) }
        var parameters: [ReloadNotification.Parameter] = []
        values.visitPositions { place, position in
            guard place < parameterNames.count, let name = parameterNames[place] else { return }
            let parameter: ReloadNotification.Parameter
            switch position {
            case .missing, .nothing: return
            case .unset: parameter = .init(name: name, value: nil)
            case .value(let text): parameter = .init(name: name, value: text)
            }
            if !parameters.contains(parameter) { parameters.append(parameter) }
        }
        if parameters.count > 1 { parameters.sort { $0.name < $1.name } }
        return StaleName(target, kind, parameters)
    }
}

extension Operation {
    /// A bit of its own.
    fileprivate var bit: UInt8 {
        switch self {
        case .insert: 1
        case .update: 2
        case .delete: 4
        }
    }
}

extension Change {
    /// The values of an attribute, `id` being the change's id; `nil` when it is missing.
    func values(of attribute: String) -> [String]? {
        attribute == "id" ? id.map { [$0] } : attributes[attribute]
    }

    /// How many values an attribute has; `nil` when it is missing.
    func valueCount(of attribute: String) -> Int? {
        attribute == "id" ? id.map { _ in 1 } : attributes[attribute]?.count
    }
}
