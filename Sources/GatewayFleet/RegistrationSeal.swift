import Foundation
import GatewayCore
import GatewayPostgres
import GatewayRecords
import WidgetModel

/// Wraps registrations under the key of the fleet: a dump of the database alone reveals no push
/// token and no attribute.
package struct RegistrationSeal: Sendable {
    private static let kind = "registration"

    private let key: FleetKey

    package init(_ key: FleetKey) { self.key = key }

    /// Wraps a registration in stored form.
    ///
    /// - Throws: `SecretError.cryptoFailed`.
    func close(_ payload: [UInt8], of key: RegistrationKey) throws(SecretError) -> [UInt8] {
        try self.key.wrap(
            SecretBytes(copying: payload), kind: Self.kind, name: Self.name(of: key))
    }

    /// Returns the row of a registration.
    ///
    /// - Parameters:
    ///   - payload: The registration in stored form.
    ///   - record: The same, as the shards see it.
    ///   - seenAt: The time at which the client was seen, in milliseconds since 1970; 0 if it was
    ///     not.
    /// - Throws: `SecretError.cryptoFailed`.
    func content(
        _ payload: [UInt8], _ record: ClientRecord, of key: RegistrationKey, _ hashes: FleetHashes,
        seenAt: Int64
    ) throws(SecretError) -> RegistrationContent {
        RegistrationContent(
            digest: hashes.digest(of: payload),
            attributes: hashes.attributes(record.attributes, of: key.app),
            tokens: Set(
                record.registration.pushAddresses.compactMap { hashes.token(of: $0, of: key.app) }
            ).sorted(),
            seenDay: Int32(clamping: seenAt / 86_400_000),
            payload: try close(payload, of: key))
    }

    /// Returns the stored form of a registration.
    ///
    /// - Throws: `SecretError.notAuthentic` for a row of another client or another fleet.
    func payload(_ row: RegistrationRow) throws(SecretError) -> Data {
        try payload(row.content.payload, of: row.key)
    }

    /// Returns the stored form of the registration of a client.
    ///
    /// - Throws: `SecretError.notAuthentic` for a row of another client or another fleet.
    func payload(_ wrapped: [UInt8], of key: RegistrationKey) throws(SecretError) -> Data {
        try self.key.unwrap(wrapped, kind: Self.kind, name: Self.name(of: key))
            .withBytes { Data($0) }
    }

    /// A registration without the push tokens that another client has registered since.
    struct Opened {
        var stored: StoredRegistration
        let lost: [DeliveryAddress]
    }

    /// Reads a registration.
    ///
    /// - Parameter tokens: The hashes of the push tokens that are its own.
    func open(
        _ payload: [UInt8], of key: RegistrationKey, tokens: Set<UInt128>, _ hashes: FleetHashes
    ) throws -> Opened {
        var stored = try StoredRegistration(self.payload(payload, of: key), limits: .none)
        let lost = stored.registration.pushAddresses.filter { address in
            hashes.token(of: address, of: key.app).map { !tokens.contains($0) } ?? false
        }
        for address in lost { stored.remove(address) }
        return Opened(stored: stored, lost: Array(lost))
    }

    /// The length before the app keeps app and client apart.
    private static func name(of key: RegistrationKey) -> String {
        "\(key.app.utf8.count):\(key.app)\(key.client)"
    }
}
