import WidgetModel

/// A registered client as the shards see it: immutable, shared by all of them.
package final class ClientRecord: Sendable {
    /// The client's id.
    package let client: String
    /// What it registered.
    package let registration: ClientRegistration
    /// Its attributes: those it may state itself and those its token or backend vouched for.
    package let attributes: [String: [String]]
    /// Up to where each recommendation set is known to be built: by its `builtAt`, by an
    /// acknowledgement, or else by the position at which it was first registered.
    package let confirmed: [String: UInt64]
    /// The position of the log at which the client first registered: what came before is of no
    /// interest to it.
    package let since: UInt64
    /// When it, or its backend, last said how it is told, in milliseconds since 1970.
    package let addressedAt: Int64
    /// Whether it, or a control of its, can be told otherwise than by streams and polls.
    package let isPushable: Bool

    /// A record.
    package init(
        client: String, registration: ClientRegistration, attributes: [String: [String]],
        confirmed: [String: UInt64] = [:], since: UInt64 = 0, addressedAt: Int64 = 0
    ) {
        self.client = client
        self.registration = registration
        self.attributes = attributes
        self.confirmed = confirmed
        self.since = since
        self.addressedAt = addressedAt
        isPushable =
            registration.delivery.contains { $0 != .stream }
            || registration.controls.contains { ($0.delivery ?? .stream) != .stream }
    }

    /// The same client with attributes that a token vouches for beside those registered.
    package func vouched(_ vouched: [String: [String]]) -> ClientRecord {
        guard vouched.contains(where: { attributes[$0.key] != $0.value }) else { return self }
        return ClientRecord(
            client: client, registration: registration,
            attributes: attributes.merging(vouched) { $1 }, confirmed: confirmed, since: since,
            addressedAt: addressedAt)
    }

    /// The same client with a recommendation set confirmed.
    package func with(confirmed: [String: UInt64]) -> ClientRecord {
        ClientRecord(
            client: client, registration: registration, attributes: attributes,
            confirmed: confirmed, since: since, addressedAt: addressedAt)
    }
}
