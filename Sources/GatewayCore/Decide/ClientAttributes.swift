/// The attributes a registration puts in force, by who answers for them.
package struct ClientAttributes: Sendable, Equatable {
    /// Those that the client stated itself, as its catalog allows.
    package let own: [String: [String]]
    /// Those that its token or its backend vouched for.
    package let vouched: [String: [String]]

    /// Why a client may not state an attribute.
    package enum Refusal: Error, Sendable, Equatable {
        /// Its token, or its backend before, vouches for other values.
        case contradictsToken(attribute: String)
        /// Nobody vouches for it, and the catalog does not let clients state it themselves.
        case notVouched(attribute: String)
    }

    /// What a backend states it vouches for.
    package init(statedByBackend stated: [String: [String]]) {
        own = [:]
        vouched = stated
    }

    /// What a client states: it may repeat what is vouched for, in any order, and add what the
    /// catalog lists as `selfDeclared`.
    ///
    /// - Parameters:
    ///   - stated: The attributes of its registration.
    ///   - token: What its token vouches for; it overrides `before`.
    ///   - before: What was vouched for when it registered last.
    ///   - selfDeclared: The names that clients of the app may state themselves.
    /// - Throws: ``Refusal`` for the first attribute in the order of names that it may not state.
    package init(
        statedByClient stated: [String: [String]], token: [String: [String]],
        before: [String: [String]], selfDeclared: Set<String>
    ) throws(Refusal) {
        let vouched = before.merging(token) { $1 }
        var own: [String: [String]] = [:]
        for (name, values) in stated.sorted(by: { $0.key < $1.key }) {
            if let known = vouched[name] {
                guard Set(known) == Set(values) else { throw .contradictsToken(attribute: name) }
            } else if selfDeclared.contains(name) {
                own[name] = values
            } else {
                throw .notVouched(attribute: name)
            }
        }
        self.own = own
        self.vouched = vouched
    }
}
