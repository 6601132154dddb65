import WidgetModel

/// The attributes of a registration, separated by who vouches for them.
///
/// A backend's attributes are valid until a backend sets them again. A token's attributes are valid
/// only while the client's latest token contains them: a client that returns with a token that
/// vouches for less is notified of less.
package struct ClientAttributes: Sendable, Equatable {
    /// The attributes that the client stated itself, as its catalog allows.
    package var own: [String: [String]]
    /// The attributes that the client's latest token vouches for.
    package var token: [String: [String]]
    /// The attributes that a backend set.
    package var backend: [String: [String]]
    /// The attributes vouched for by a token or a backend, stored by a version that did not
    /// distinguish them.
    ///
    /// A backend's attribute dropped by mistake would never come back, so they are treated as a
    /// backend's until a backend sets attributes. A token that names one takes it over, so that no
    /// client is rejected because of its previous token.
    package var unattributed: [String: [String]]

    /// The reason why a client may not state an attribute, or present a token.
    package enum Rejection: Error, Sendable, Equatable {
        /// The token, or a backend earlier, vouches for other values than the client states.
        case contradictsToken(attribute: String)
        /// The token vouches for other values than the backend set or the client registered.
        case tokenContradicts(attribute: String)
        /// Neither a token nor a backend vouches for it, and the catalog lets no client state it.
        case notVouched(attribute: String)
    }

    /// Creates attributes by origin.
    package init(
        own: [String: [String]] = [:], token: [String: [String]] = [:],
        backend: [String: [String]] = [:], unattributed: [String: [String]] = [:]
    ) {
        self.own = own
        self.token = token
        self.backend = backend
        self.unattributed = unattributed
    }

    /// Creates attributes as a backend sets them.
    ///
    /// - Parameters:
    ///   - stated: All attributes that the backend vouches for from now on.
    ///   - names: The names that a patch mentions; `nil` if it replaces all attributes.
    ///   - before: The previous attributes. The latest token's still count unless the backend
    ///     contradicts them.
    package init(
        statedByBackend stated: [String: [String]], naming names: Set<String>? = nil,
        before: ClientAttributes = ClientAttributes()
    ) {
        if let names {
            own = before.own.filter { !names.contains($0.key) }
            unattributed = before.unattributed.filter { !names.contains($0.key) }
        } else {
            own = [:]
            unattributed = [:]
        }
        token = before.token.filter { name, values in
            stated[name]?.hasSameTexts(as: values) ?? true
        }
        backend = stated
    }

    /// Creates attributes as a client states them. It may repeat vouched attributes, in any order,
    /// and add those that the catalog lists as `selfDeclared`.
    ///
    /// - Parameters:
    ///   - stated: The attributes of its registration.
    ///   - token: The attributes that its current token vouches for.
    ///   - before: The previous attributes.
    ///   - selfDeclared: The names that clients of the app may state themselves.
    /// - Throws: ``Rejection`` for the first attribute, by name, that it may not state.
    package init(
        statedByClient stated: [String: [String]], token: [String: [String]],
        before: ClientAttributes = ClientAttributes(), selfDeclared: Set<String>
    ) throws(Rejection) {
        var before = before
        before.own = [:]
        self = try before.presenting(token)
        let vouched = inForce
        for (name, values) in stated.sorted(by: { $0.key < $1.key }) {
            if let known = vouched[name] {
                guard known.hasSameTexts(as: values) else {
                    throw .contradictsToken(attribute: name)
                }
            } else if selfDeclared.contains(name) {
                own[name] = values
            } else {
                throw .notVouched(attribute: name)
            }
        }
    }

    /// Returns the attributes after the client presented a token. The attributes of the previous
    /// token no longer count.
    ///
    /// - Throws: ``Rejection`` for the first attribute, in the order of names, that contradicts the
    ///   backend or the client's own registration.
    package func presenting(_ token: [String: [String]]) throws(Rejection) -> ClientAttributes {
        for (name, values) in token.sorted(by: { $0.key < $1.key }) {
            if let known = backend[name] ?? own[name], !known.hasSameTexts(as: values) {
                throw .tokenContradicts(attribute: name)
            }
        }
        var attributes = self
        attributes.token = token
        attributes.unattributed = unattributed.filter { token[$0.key] == nil }
        return attributes
    }

    /// The effective attributes.
    package var inForce: [String: [String]] {
        [unattributed, token, backend].reduce(own) { all, part in
            // Most clients have attributes of only one origin, and share its storage.
            part.isEmpty ? all : all.isEmpty ? part : all.merging(part) { $1 }
        }
    }
}
