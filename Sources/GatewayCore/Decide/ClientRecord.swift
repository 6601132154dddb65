import WidgetModel

/// A registered client as the shards see it: immutable, shared by all of them.
package final class ClientRecord: Sendable {
    /// The client's id.
    package let client: String
    /// What it registered.
    package let registration: ClientRegistration
    /// The attributes that count for it.
    package let attributes: [String: [String]]
    /// The same attributes by who answers for them.
    package let origins: ClientAttributes
    /// Up to where each recommendation set is known to be built: by its `builtAt`, by an
    /// acknowledgement, or else by the position at which it was first registered.
    package let confirmed: [String: UInt64]
    /// The position of the log at which the client first registered: what came before is of no
    /// interest to it.
    package let since: UInt64
    /// When it, or its backend, last said how it is told, in milliseconds since 1970.
    package let addressedAt: Int64
    /// Stands for what was registered; see ``RegistrationDigest``.
    package let digest: String
    /// Whether it, or a control of its, can be told otherwise than by streams and polls.
    package let isPushable: Bool

    /// A record.
    package init(
        client: String, registration: ClientRegistration, attributes origins: ClientAttributes,
        confirmed: [String: UInt64] = [:], since: UInt64 = 0, addressedAt: Int64 = 0,
        digest: String = ""
    ) {
        self.client = client
        self.registration = registration
        self.origins = origins
        attributes = origins.inForce
        self.confirmed = confirmed
        self.since = since
        self.addressedAt = addressedAt
        self.digest = digest
        isPushable =
            registration.delivery.contains { $0 != .stream }
            || registration.controls.contains { ($0.delivery ?? .stream) != .stream }
    }

    /// The same client with a recommendation set confirmed.
    package func with(confirmed: [String: UInt64]) -> ClientRecord {
        ClientRecord(
            client: client, registration: registration, attributes: origins,
            confirmed: confirmed, since: since, addressedAt: addressedAt, digest: digest)
    }
}
