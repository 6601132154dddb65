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
/// repeats it keeps its versions.
package struct Rule: Sendable {
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

    private let identityHash: UInt64
    private let hash: SipHash
    private let properties: Set<String>
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
        func agreesUnset(with values: [String]) -> Bool {
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
        properties = Set(declaration.properties)
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
        self.literals = literals
        identity = Self.identity(declaration, target, kind, bindings)
        identityHash = hash(identity)
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
        hash(identityHash, hash(bytes))
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
        guard declaration.operations.contains(change.operation) else { return .operationNotListed }
        if change.operation == .update, !properties.isEmpty, !change.properties.isEmpty,
            !change.properties.contains(where: properties.contains)
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

    /// Whether a change that hits this rule does so for lack of an attribute.
    package func isBroad(_ change: Change) -> Bool {
        declaration.match.contains { change.values(of: $0.attribute) == nil }
    }

    /// How many combinations of values the change has at this rule's positions.
    func combinations(of change: Change) -> Int {
        bindings.reduce(1) { product, binding in
            let (result, overflow) = product.multipliedReportingOverflow(
                by: change.values(of: binding.attribute)?.count ?? 1)
            return overflow ? Int.max : result
        }
    }

    /// The keys a change raises: at each position every value it has, and `unset` beside them
    /// for a parameter without default or with one among them; or `missing` when it lacks the
    /// attribute.
    func keys(of change: Change) -> [BoundValues] {
        var encodings: [[UInt8]] = [[]]
        for binding in bindings {
            guard let values = change.values(of: binding.attribute) else {
                for index in encodings.indices {
                    BoundValues.append(.missing, to: &encodings[index])
                }
                continue
            }
            var positions = values.map(BoundValues.Position.value)
            if binding.agreesUnset(with: values) { positions.append(.unset) }
            encodings = encodings.extended(by: positions)
        }
        return encodings.map { BoundValues(rule: self, bytes: $0) }
    }
}

extension Change {
    /// The values of an attribute, `id` being the change's id; `nil` when it is missing.
    func values(of attribute: String) -> [String]? {
        attribute == "id" ? id.map { [$0] } : attributes[attribute]
    }
}

extension [[UInt8]] {
    /// Every encoding extended by every position.
    func extended(by positions: [BoundValues.Position]) -> [[UInt8]] {
        if count == 1, positions.count == 1, let only = positions.first {
            var result = self
            BoundValues.append(only, to: &result[0])
            return result
        }
        return flatMap { encoding in
            positions.map { position in
                var extended = encoding
                BoundValues.append(position, to: &extended)
                return extended
            }
        }
    }
}
