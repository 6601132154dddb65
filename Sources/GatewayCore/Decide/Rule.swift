import CatalogModel
import WidgetModel

/// The content that a rule makes stale.
package enum Target: UInt8, Sendable, Hashable {
    /// The timelines of a kind's widgets.
    case timeline
    /// A kind's recommendation set.
    case recommendations
    /// A kind's relevance.
    case relevance
    /// The placed controls of a kind.
    case control
    /// The Live Activities of a type.
    case activity

    /// Whether widgets show the content.
    package var isWidget: Bool { self == .timeline || self == .relevance }
}

/// A dependency rule of a catalog, compiled for deciding.
///
/// A rule is identified by its content, defaults included, not by its position: a catalog that
/// repeats it keeps its versions. Immutable, and a class so that passing it on copies nothing.
package final class Rule: Sendable {
    /// The content that the rule makes stale.
    package let target: Target
    /// The kind, or type of activities, that it belongs to.
    package let kind: String
    package let declaration: DependencyRule
    /// The sequence of the catalog that first declared it, without interruption since.
    var since: UInt64 { declared.sequence }
    /// The catalog that first declared it.
    let declared: CatalogPosition
    /// The content as bytes, which are equal exactly when the content is.
    package let identity: [UInt8]
    /// The bindings that have a position in this rule's keys: all except literals.
    package let bindings: [Binding]
    /// The collapse window: at most one notification per key in this time, ms.
    package let collapse: Int64

    private let hash: SipHash
    /// The hash state after the identity; every key of the rule is hashed starting from it.
    private let hashState: SipHash.State
    private let operations: UInt8
    /// The properties of interest if there are many; a few are compared faster than hashed.
    private let properties: Set<String>?
    /// The hash of the key of a widget that leaves every parameter unset.
    private let unsetHash: UInt64
    /// Whether its only binding is to the change's id.
    private let isByIDAlone: Bool
    private let hasProperties: Bool
    /// For each binding, `true` if a widget that leaves its parameter unset matches every value;
    /// `nil` if this depends on the value.
    private let agreesUnset: [Bool?]
    /// For each binding, the name of the parameter; `nil` if it binds to none.
    private let parameterNames: [String?]
    private let literals: [(attribute: String, value: String)]

    /// A binding whose value differs between widgets.
    package struct Binding: Sendable, Hashable {
        /// The attribute of the change; `id` is the change's id.
        package let attribute: String
        /// The source of the client's value.
        package let source: Source

        /// The source of a client's value for a binding.
        package enum Source: Sendable, Hashable {
            /// An intent parameter, with the value for an unset one.
            case parameter(name: String, defaultValue: ParameterValue)
            case clientAttribute(String)
        }

        /// Returns whether a widget that leaves this binding's parameter unset matches `values`.
        func agreesUnset(with values: some Collection<String>) -> Bool {
            guard case .parameter(_, let defaultValue) = source else { return false }
            guard defaultValue != .unset else { return true }
            return defaultValue.texts.contains { text in
                values.contains(where: text.hasSameBytes)
            }
        }
    }

    init(
        _ declaration: DependencyRule, target: Target, kind: String, collapse: Int64,
        intent: IntentDeclaration?, identity: [UInt8], declared: CatalogPosition, hash: SipHash
    ) {
        let bindings = Self.bindings(of: declaration, intent)
        self.declaration = declaration
        self.target = target
        self.declared = declared
        self.identity = identity
        self.hash = hash
        self.kind = kind
        self.collapse = collapse
        properties = declaration.properties.count > 8 ? Set(declaration.properties) : nil
        operations = declaration.operations.reduce(0) { $0 | $1.bit }
        literals = declaration.match.compactMap { match in
            if case .literal(let text) = match.binding { (match.attribute, text) } else { nil }
        }
        self.bindings = bindings
        parameterNames = bindings.map {
            if case .parameter(let name, _) = $0.source { name } else { nil }
        }
        hashState = hash.absorbing(hash(identity))
        let unset = [UInt8](repeating: 1, count: bindings.count)
        let state = hashState
        unsetHash = unset.withUnsafeBytes { hash.hash($0, after: state) }
        isByIDAlone = bindings.count == 1 && bindings[0].attribute == "id"
        agreesUnset = bindings.map { binding in
            if case .parameter(_, .unset) = binding.source { true } else { nil }
        }
        hasProperties = !declaration.properties.isEmpty
    }

    /// Returns the bindings that differ between widgets.
    private static func bindings(
        of declaration: DependencyRule, _ intent: IntentDeclaration?
    ) -> [Binding] {
        declaration.match.compactMap { match in
            switch match.binding {
            case .literal: return nil
            case .parameter(let name):
                let value = intent?.parameter(name)?.defaultValue ?? .unset
                return Binding(
                    attribute: match.attribute,
                    source: .parameter(name: name, defaultValue: value))
            case .clientAttribute(let name):
                return Binding(attribute: match.attribute, source: .clientAttribute(name))
            }
        }
    }

    /// Returns the rule's content as JSON, an encoding that is unique for each content.
    static func identity(
        of declaration: DependencyRule, target: Target, kind: String,
        intent: IntentDeclaration?
    ) -> [UInt8] {
        let bindings = bindings(of: declaration, intent)
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

    /// Returns the keyed hash of one of this rule's keys.
    func keyHash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        hash.hash(bytes, after: hashState)
    }

    /// Returns the keyed hash of one of this rule's keys.
    func keyHash(_ bytes: [UInt8]) -> UInt64 {
        // Sound: the buffer is read within the closure that lends it.
        bytes.withUnsafeBytes(keyHash)
    }

    /// The result of matching a change against the rule: a hit, or the reason why not.
    package enum Verdict: Sendable, Equatable {
        /// The change hits the rule.
        case hit
        /// The change is about another entity.
        case otherEntity
        /// The change's operation is not listed.
        case operationNotListed
        /// None of the change's properties is listed.
        case propertiesNotListed
        /// The change has another value than the literal bound to this attribute.
        case literalDiffers(attribute: String)
    }

    /// Compares everything except the positions, which differ between widgets.
    package func verdict(on change: Change) -> Verdict {
        guard change.entity == declaration.entity else { return .otherEntity }
        return verdict(onOwnEntity: change)
    }

    /// Returns the verdict on a change of this rule's entity.
    func verdict(onOwnEntity change: Change) -> Verdict {
        guard operations & change.operation.bit != 0 else { return .operationNotListed }
        if change.operation == .update, hasProperties,
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

    /// Adds the keys that a change bumps when it hits this rule. Each position takes every value of
    /// the attribute, or `missing` if the change lacks it; and also `unset`, if the parameter has
    /// no default or one that matches.
    ///
    /// - Parameter isBroad: Set to `true` if the change hits because it lacks an attribute.
    /// - Throws: ``RuleSet/TooManyKeys`` for more than `limits.changeRuleKeysMax` combinations of
    ///   values, or if `keys` would exceed `limits.changeKeysMax`; `keys` is then unchanged.
    func raise(
        _ change: Change, slot: Int, limits: Limits, isBroad: inout Bool,
        into keys: inout InvalidatedKeys
    ) throws(RuleSet.TooManyKeys) {
        for literal in literals where change.valueCount(of: literal.attribute) == nil {
            isBroad = true
        }
        func requireRoom(_ count: Int) throws(RuleSet.TooManyKeys) {
            let (sum, overflow) = keys.count.addingReportingOverflow(count)
            guard !overflow, sum <= limits.changeKeysMax else {
                throw RuleSet.TooManyKeys(count: overflow ? .max : sum, kind: nil)
            }
        }
        if isByIDAlone, let id = change.id {
            try requireRoom(2)
            // The fast path for nearly all rules and changes: nothing is computed per binding.
            keys.begin()
            keys.add(value: id)
            keys.end(self, slot: slot, isBroad: false)
            if agreesUnset[0] ?? bindings[0].agreesUnset(with: CollectionOfOne(id)) {
                keys.begin()
                keys.add(tag: 1)
                keys.end(self, slot: slot, isBroad: false, hash: unsetHash)
            }
            return
        }
        let values = bindings.map { change.values(of: $0.attribute) }
        var (combinations, keyCount, lacksOne) = (1, 1, false)
        for (place, values) in values.enumerated() {
            guard let values else {
                lacksOne = true
                continue
            }
            let isUnsetToo = agreesUnset[place] ?? bindings[place].agreesUnset(with: values)
            combinations = combinations.saturatingProduct(values.count)
            keyCount = keyCount.saturatingProduct(values.count + (isUnsetToo ? 1 : 0))
        }
        guard combinations <= limits.changeRuleKeysMax else {
            throw RuleSet.TooManyKeys(count: combinations, kind: kind)
        }
        try requireRoom(keyCount)
        if lacksOne { isBroad = true }
        /// Adds the possible values at `place` and after it to the begun key; the first position's
        /// values vary slowest.
        func extend(_ place: Int) {
            guard place < bindings.count else {
                return keys.end(self, slot: slot, isBroad: lacksOne)
            }
            let prefix = keys.byteCount
            guard let values = values[place] else {
                keys.add(tag: 0)
                return extend(place + 1)
            }
            for text in values {
                keys.begin(prefix: prefix)
                keys.add(value: text)
                extend(place + 1)
            }
            if agreesUnset[place] ?? bindings[place].agreesUnset(with: values) {
                keys.begin(prefix: prefix)
                keys.add(tag: 1)
                extend(place + 1)
            }
        }
        keys.begin()
        extend(0)
        // A key is left open if an attribute has an empty list.
        keys.cancel()
    }

    /// Returns the name of one of this rule's keys in a notification.
    package func name(of values: BoundValues) -> InvalidationTarget {
        values.withEncoded { name(of: $0.bytes) }
    }

    /// Returns the name of the key with these bytes in a notification.
    func name(of bytes: UnsafeRawBufferPointer) -> InvalidationTarget {
        guard target == .timeline || target == .activity else {
            return InvalidationTarget(target, kind)
        }
        var parameters: [ReloadNotification.Parameter] = []
        bytes.visitPositions { place, position in
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
        return InvalidationTarget(target, kind, parameters)
    }
}

extension Int {
    /// Returns the product, or the greatest integer on overflow.
    fileprivate func saturatingProduct(_ other: Int) -> Int {
        let (product, overflow) = multipliedReportingOverflow(by: other)
        return overflow ? .max : product
    }
}

extension Change.Operation {
    /// The operation's bit in a set.
    fileprivate var bit: UInt8 {
        switch self {
        case .insert: 1
        case .update: 2
        case .delete: 4
        }
    }
}

extension Change {
    /// Returns the values of an attribute, where `id` is the change's id; `nil` when it is missing.
    func values(of attribute: String) -> [String]? {
        attribute == "id" ? id.map { [$0] } : attributes[attribute]
    }

    /// Returns the number of values of an attribute; `nil` when it is missing.
    func valueCount(of attribute: String) -> Int? {
        attribute == "id" ? id.map { _ in 1 } : attributes[attribute]?.count
    }
}
