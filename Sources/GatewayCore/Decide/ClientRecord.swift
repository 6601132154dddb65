import WidgetModel

/// A registered client as used by the shards: immutable, and shared by all of them.
package final class ClientRecord: Sendable {
    /// The client's id.
    package let client: String
    package let registration: ClientRegistration
    /// The effective attributes.
    package let attributes: [String: [String]]
    /// The same attributes by origin.
    package let origins: ClientAttributes
    /// The sequence up to which each recommendation set is known to be built: from its `builtAt`,
    /// from an acknowledgement, or otherwise the position of its first registration.
    package let confirmed: [String: UInt64]
    /// The position of the log at which the client first registered. Earlier entries are irrelevant
    /// to it.
    package let since: UInt64
    /// The time at which the client, or its backend, last stated its delivery addresses, ms since
    /// 1970.
    package let addressedAt: Int64
    /// The digest of the registration; see ``RegistrationDigest``.
    package let digest: String
    /// Whether the client, or one of its controls or activities, has an address other than streams
    /// and polls.
    package let isPushable: Bool

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
            || registration.activities.contains { $0.delivery != nil }
            || !registration.activityStarts.isEmpty
    }

    /// Returns the same client with recommendation sets confirmed.
    package func with(confirmed: [String: UInt64]) -> ClientRecord {
        ClientRecord(
            client: client, registration: registration, attributes: origins,
            confirmed: confirmed, since: since, addressedAt: addressedAt, digest: digest)
    }
}
