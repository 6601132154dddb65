/// The attributes of a registration, kept apart by who answers for them.
///
/// A backend's hold until a backend sets them again. A token's hold only while the client's latest
/// token says the same: a client that comes back with a token that vouches for less is told less.
package struct ClientAttributes: Sendable, Equatable {
    /// Attributes that the client stated itself, as its catalog allows.
    package var own: [String: [String]]
    /// Attributes that the client's latest token vouches for.
    package var token: [String: [String]]
    /// Attributes that a backend set.
    package var backend: [String: [String]]
    /// Attributes vouched for by a token or a backend, stored by a version that did not tell which.
    ///
    /// A backend's attribute that is dropped by mistake would never come back, so they hold as a
    /// backend's do until a backend sets attributes; and a token that names one takes it over, so
    /// that no client is refused for what its token before vouched for.
    package var unattributed: [String: [String]]

    /// Why a client may not state an attribute, or present a token.
    package enum Refusal: Error, Sendable, Equatable {
        /// The token, or the backend before, vouches for other values than the client states.
        case contradictsToken(attribute: String)
        /// The token vouches for other values than the backend set, or than the client registered
        /// as its own.
        case tokenContradicts(attribute: String)
        /// Nobody vouches for it, and the catalog does not let clients state it themselves.
        case notVouched(attribute: String)
    }

    /// Attributes by origin.
    package init(
        own: [String: [String]] = [:], token: [String: [String]] = [:],
        backend: [String: [String]] = [:], unattributed: [String: [String]] = [:]
    ) {
        self.own = own
        self.token = token
        self.backend = backend
        self.unattributed = unattributed
    }

    /// Attributes as a backend sets them.
    ///
    /// - Parameters:
    ///   - stated: All attributes that the backend vouches for from now on.
    ///   - names: The names that a patch mentions; `nil` where it replaces all attributes.
    ///   - before: The attributes before. The latest token still counts where the backend does not
    ///     contradict it.
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
            stated[name].map { Set($0) == Set(values) } ?? true
        }
        backend = stated
    }

    /// Attributes as a client states them: it may repeat what is vouched for, in any order, and add
    /// what the catalog lists as `selfDeclared`.
    ///
    /// - Parameters:
    ///   - stated: The attributes of its registration.
    ///   - token: The attributes that its present token vouches for.
    ///   - before: The attributes before.
    ///   - selfDeclared: The names that clients of the app may state themselves.
    /// - Throws: ``Refusal`` for the first attribute in the order of names that it may not state.
    package init(
        statedByClient stated: [String: [String]], token: [String: [String]],
        before: ClientAttributes = ClientAttributes(), selfDeclared: Set<String>
    ) throws(Refusal) {
        var before = before
        before.own = [:]
        self = try before.presenting(token)
        let vouched = inForce
        for (name, values) in stated.sorted(by: { $0.key < $1.key }) {
            if let known = vouched[name] {
                guard Set(known) == Set(values) else { throw .contradictsToken(attribute: name) }
            } else if selfDeclared.contains(name) {
                own[name] = values
            } else {
                throw .notVouched(attribute: name)
            }
        }
    }

    /// Returns the attributes after the client presented a token: what the token before vouched for
    /// no longer counts.
    ///
    /// - Throws: ``Refusal`` for the first attribute in the order of names for which the backend, or
    ///   the client's own registration, has other values.
    package func presenting(_ token: [String: [String]]) throws(Refusal) -> ClientAttributes {
        for (name, values) in token.sorted(by: { $0.key < $1.key }) {
            if let known = backend[name] ?? own[name], Set(known) != Set(values) {
                throw .tokenContradicts(attribute: name)
            }
        }
        var attributes = self
        attributes.token = token
        attributes.unattributed = unattributed.filter { token[$0.key] == nil }
        return attributes
    }

    /// The attributes that count.
    package var inForce: [String: [String]] {
        [unattributed, token, backend].reduce(own) { all, part in
            // Most clients have attributes of one origin only, and share its storage.
            part.isEmpty ? all : all.isEmpty ? part : all.merging(part) { $1 }
        }
    }
}
