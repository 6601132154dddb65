import Foundation
import GatewayCore
import GatewayStorage
import WidgetModel

package struct StoredRegistration: Sendable {
    /// The registration by the client, or by its backend.
    package var registration: ClientRegistration
    /// Its attributes, by the party that answers for them.
    package var attributes = ClientAttributes()
    /// The digest of the last stated registration. It does not change when an unreachable address
    /// is dropped: a client that registered the address would register it again.
    package var digest = ""
    /// The position up to which each recommendation set is known to be built.
    package var confirmed: [String: UInt64] = [:]
    /// The position of the log at which the client first registered.
    package var since: UInt64 = 0
    /// The time at which its addresses were last stated, in milliseconds since 1970.
    package var addressedAt: Int64 = 0

    /// The registration in stored form.
    package var payload: Data { payload(of: registration.json(maskingTokens: false)) }

    /// The registration in stored form, made from `document`, which equals ``registration`` with
    /// its tokens.
    package func payload(of document: JSONValue) -> Data {
        var confirmedJSON = JSONObject()
        for (kind, sequence) in confirmed.sorted(by: { $0.key < $1.key }) {
            confirmedJSON[kind] = .integer(Int64(clamping: sequence))
        }
        var object: JSONObject = ["registration": document]
        for (name, part) in Self.origins where !attributes[keyPath: part].isEmpty {
            object[name] = attributesJSON(attributes[keyPath: part])
        }
        object["digest"] = .string(digest)
        object["confirmed"] = .object(confirmedJSON)
        object["since"] = .integer(Int64(clamping: since))
        object["addressedAt"] = .integer(addressedAt)
        return Data(JSONValue.object(object).serialized)
    }

    /// The members that hold attributes. `vouched` dates from before tokens and backends were
    /// distinguished.
    private static var origins:
        [(name: String, part: WritableKeyPath<ClientAttributes, [String: [String]]>)]
    {
        [
            ("own", \.own), ("token", \.token), ("backend", \.backend),
            ("vouched", \.unattributed),
        ]
    }

    package init(registration: ClientRegistration) {
        self.registration = registration
    }

    package init(_ payload: Data, limits: Limits) throws {
        guard let object = try JSONValue(parsing: Array(payload)).objectValue,
            let document = object["registration"]
        else { throw LogPayload.Unreadable(reason: "a registration without document") }
        registration = try ClientRegistration.read(document, limits: limits).registration
        var faults = Faults()
        for (name, part) in Self.origins {
            guard let value = object[name] else { continue }
            attributes[keyPath: part] = readAttributes(value, at: name, limits: limits, &faults)
        }
        guard faults.isEmpty else { throw faults }
        digest =
            object["digest"]?.stringValue ?? RegistrationDigest.text(of: registration, attributes)
        for member in object["confirmed"]?.objectValue?.members ?? [] {
            confirmed[member.name] = member.value.integerValue.flatMap { UInt64(exactly: $0) } ?? 0
        }
        // Stores from before pushes have neither: everything counts as missed.
        since = object["since"]?.integerValue.flatMap { UInt64(exactly: $0) } ?? 0
        addressedAt = object["addressedAt"]?.integerValue ?? 0
    }

    /// Removes an address from the client, its controls and activities, and a type that was started
    /// there.
    package mutating func remove(_ address: DeliveryAddress) {
        registration.delivery.removeAll { $0 == address }
        for index in registration.controls.indices
        where registration.controls[index].delivery == address {
            registration.controls[index].delivery = nil
        }
        for index in registration.activities.indices
        where registration.activities[index].delivery == address {
            registration.activities[index].delivery = nil
        }
        registration.activityStarts.removeAll { $0.delivery == address }
    }

    /// The registration as the shards see it.
    package func record(of client: String) -> ClientRecord {
        ClientRecord(
            client: client, registration: registration, attributes: attributes,
            confirmed: confirmed, since: since, addressedAt: addressedAt, digest: digest)
    }
}

extension StoredRegistration {
    /// Returns the effective attributes of a registration as it is stored. Throws
    /// ``UnreadableRow``.
    package static func attributes(of row: RegistrationRow) throws -> [String: [String]] {
        try Self(row.payload, limits: .none).record(of: row.key.client).attributes
    }
}
