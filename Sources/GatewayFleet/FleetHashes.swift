import Foundation
import GatewayCore
import GatewayPostgres
import GatewayPush
import GatewayRecords
import GatewaySigning
import WidgetModel

/// The keyed hashes of events, partitions, attributes and push tokens, equal on all nodes of a
/// fleet. Each has keys of its own; none changes within a log.
package struct FleetHashes: Sendable {
    /// The hashes of dependency keys, cursors and documents.
    package let store: StoreHashes
    private let event: WideHash
    private let attribute: WideHash
    private let address: WideHash
    private let content: SipHash
    private let partition: SipHash

    /// Derives the keys from the secret of the log.
    ///
    /// - Throws: `SigningError` when OpenSSL cannot derive a key.
    package init(secret: [UInt8]) throws(SigningError) {
        func key(_ use: String) throws(SigningError) -> [UInt8] {
            try derivedKey(from: secret, for: "timeline-gateway fleet \(use)", count: 32)
        }
        store = try StoreHashes(secret: Data(secret))
        event = WideHash(try key("events"))
        attribute = WideHash(try key("attributes"))
        address = WideHash(try key("addresses"))
        content = SipHash(secret: try key("contents"))
        partition = SipHash(secret: try key("partitions"))
    }

    private static let partitions: UInt64 = 4_096

    /// Returns the key of a client's registration.
    func key(of client: ClientKey) -> RegistrationKey {
        let hash = partition(Self.words(client.app, client.client))
        return RegistrationKey(
            part: Int16(hash % Self.partitions), app: client.app, client: client.client)
    }

    /// Returns the hash of an event's identity.
    ///
    /// - Parameter removal: The sequence of its app's last removal; 0 for none.
    func event(of app: String, since removal: UInt64, source: String, id: String) -> UInt128 {
        event(Self.words(app, String(removal), source, id))
    }

    /// Returns the hash of a change's data.
    func digest(of change: Change) -> Int64 {
        Int64(bitPattern: content(change.json.serialized))
    }

    /// Returns the hash of a registration in stored form.
    func digest(of payload: [UInt8]) -> Int64 { Int64(bitPattern: content(payload)) }

    /// Returns the hash of an attribute's value.
    func attribute(_ name: String, _ value: String, of app: String) -> UInt128 {
        attribute(Self.words(app, name, value))
    }

    /// Returns the hashes of a registration's attributes, in order.
    func attributes(_ attributes: [String: [String]], of app: String) -> [UInt128] {
        Set(
            attributes.flatMap { name, values in values.map { attribute(name, $0, of: app) } }
        ).sorted()
    }

    /// Returns the hash of a push token, which only one client of an app has; `nil` for an address
    /// without one: any number of clients may have the same webhook.
    func token(of address: DeliveryAddress, of app: String) -> UInt128? {
        address.apns.map { self.address(Self.words(app, $0.pushType, $0.token)) }
    }

    /// Returns texts as bytes that no other texts have.
    private static func words(_ texts: String...) -> [UInt8] {
        texts.flatMap { text in
            (0..<4).map { UInt8(truncatingIfNeeded: text.utf8.count >> (8 * $0)) } + text.utf8
        }
    }
}

/// A keyed hash of 128 bits.
private struct WideHash: Sendable {
    private let high: SipHash
    private let low: SipHash

    /// - Parameter key: 32 bytes.
    init(_ key: [UInt8]) {
        high = SipHash(secret: Array(key.prefix(16)))
        low = SipHash(secret: Array(key.suffix(16)))
    }

    func callAsFunction(_ bytes: [UInt8]) -> UInt128 {
        UInt128(high(bytes)) << 64 | UInt128(low(bytes))
    }
}
