import WidgetModel

/// The conditions under which a client's request is answered: the requirements of its token and its
/// fields on the registration.
///
/// A registration may be replaced or removed while a request is passed from the thread that read it
/// to the shard that answers it. Therefore the shard's own loop applies these terms, to the
/// registration in force when it acts. The registry is written before any shard is informed: it has
/// the registration that the shard has applied, or a newer one that reaches the shard next.
package struct RegistrationTerms: Sendable {
    /// The reason why a request is rejected.
    package enum Rejection: Error, Equatable {
        /// The client is not, or no longer, registered.
        case notRegistered
        /// The token contradicts attributes of the registration.
        case attributes(ClientAttributes.Rejection)
    }

    /// The attributes that the request's token vouches for.
    package let vouched: [String: [String]]

    /// Creates the terms of a request whose token vouches for these attributes.
    package init(vouched: [String: [String]]) {
        self.vouched = vouched
    }

    /// Returns the registration in force if it meets the terms.
    ///
    /// - Parameter record: The registration in force; `nil` if the client has none.
    package func accept(_ record: ClientRecord?) throws(Rejection) -> ClientRecord {
        guard let record else { throw .notRegistered }
        guard !record.origins.token.hasSameBytes(as: vouched) else { return record }
        do throws(ClientAttributes.Rejection) {
            _ = try record.origins.presenting(vouched)
        } catch {
            throw .attributes(error)
        }
        return record
    }
}
