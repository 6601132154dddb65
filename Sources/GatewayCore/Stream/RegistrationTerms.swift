/// The terms on which a client's request is answered: what its token and its fields say about the
/// registration.
///
/// A registration may be replaced or removed while a request is on its way from the thread that
/// read it to the shard that answers it. Whoever acts on a registration therefore applies these
/// terms to the one in force at the moment it acts, on the shard's own loop: the registry is
/// written before any shard is told, so a shard that has applied a registration finds it there or
/// finds a newer one, which reaches it next.
package struct RegistrationTerms: Sendable {
    /// The reason why a request is refused.
    package enum Refusal: Error, Equatable {
        /// The client is not registered, or not any more.
        case notRegistered
        /// The token contradicts attributes of the registration.
        case attributes(ClientAttributes.Refusal)
    }

    /// Attributes that the request's token vouches for.
    package let vouched: [String: [String]]

    /// Terms of a request whose token vouches for these attributes.
    package init(vouched: [String: [String]]) {
        self.vouched = vouched
    }

    /// Returns the registration in force if the terms allow to act on it.
    ///
    /// - Parameter record: The registration in force; `nil` for a client that has none.
    package func accept(_ record: ClientRecord?) throws(Refusal) -> ClientRecord {
        guard let record else { throw .notRegistered }
        guard record.origins.token != vouched else { return record }
        do throws(ClientAttributes.Refusal) {
            _ = try record.origins.presenting(vouched)
        } catch {
            throw .attributes(error)
        }
        return record
    }
}
