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

    /// A record.
    package init(
        client: String, registration: ClientRegistration, attributes: [String: [String]],
        confirmed: [String: UInt64] = [:]
    ) {
        self.client = client
        self.registration = registration
        self.attributes = attributes
        self.confirmed = confirmed
    }

    /// The same client with attributes that a token vouches for beside those registered.
    package func vouched(_ vouched: [String: [String]]) -> ClientRecord {
        guard vouched.contains(where: { attributes[$0.key] != $0.value }) else { return self }
        return ClientRecord(
            client: client, registration: registration,
            attributes: attributes.merging(vouched) { $1 }, confirmed: confirmed)
    }

    /// The same client with a recommendation set confirmed.
    package func with(confirmed: [String: UInt64]) -> ClientRecord {
        ClientRecord(
            client: client, registration: registration, attributes: attributes,
            confirmed: confirmed)
    }
}
