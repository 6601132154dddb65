import Foundation
import GatewayCore
import WidgetModel

/// The payloads of the log and of the registrations as bytes: JSON, so that an operator can read a
/// store with `sqlite3` alone.
enum LogPayload {
    /// A row that cannot be read back; only a damaged store or a newer version writes one.
    struct Unreadable: Error, CustomStringConvertible {
        let reason: String

        var description: String { reason }
    }

    /// A change and the time at which it happened.
    static func change(_ change: Change, time: String?) -> Data {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(256)
        bytes.append(contentsOf: #"{"data":"#.utf8)
        change.append(to: &bytes)
        if let time {
            bytes.append(contentsOf: #","time":"#.utf8)
            JSONValue.string(time).append(to: &bytes)
        }
        bytes.append(UInt8(ascii: "}"))
        return Data(bytes)
    }

    /// Whether a stored payload holds the same change, whatever its time.
    static func isChange(_ payload: Data, _ change: Change) throws -> Bool {
        var written = Array(#"{"data":"#.utf8)
        change.append(to: &written)
        if payload.starts(with: written), payload.count > written.count {
            let next = payload[payload.startIndex + written.count]
            if next == UInt8(ascii: ",") || next == UInt8(ascii: "}") { return true }
        }
        // Another version may have encoded the same change differently.
        return try readChange(payload, limits: .none).change.json.serialized
            == change.json.serialized
    }

    static func readChange(
        _ payload: Data, limits: Limits
    ) throws -> (change: Change, cause: ChangeCause?) {
        guard let object = try JSONValue(parsing: Array(payload)).objectValue,
            let data = object["data"]
        else { throw Unreadable(reason: "a change without data") }
        return (
            try Change(data, at: "data", limits: limits),
            object["time"]?.stringValue.map { ChangeCause(time: $0) }
        )
    }

    /// A catalog document as it was uploaded.
    static func catalog(contentType: String, body: [UInt8]) -> Data {
        Data(
            JSONValue.object([
                "contentType": .string(contentType),
                "body": .string(String(decoding: body, as: UTF8.self)),
            ]).serialized)
    }

    static func readCatalog(_ payload: Data) throws -> (contentType: String, body: [UInt8]) {
        guard let object = try JSONValue(parsing: Array(payload)).objectValue,
            let contentType = object["contentType"]?.stringValue,
            let body = object["body"]?.stringValue
        else { throw Unreadable(reason: "a catalog without document") }
        return (contentType, Array(body.utf8))
    }

    /// An operator's reload.
    static func reload(_ scope: ReloadScope) -> Data { Data(scope.json.serialized) }

    static func readReload(_ payload: Data) throws -> ReloadScope {
        guard let scope = ReloadScope(try JSONValue(parsing: Array(payload))) else {
            throw Unreadable(reason: "a reload of nothing known")
        }
        return scope
    }
}

/// A registration as it is stored.
package struct StoredRegistration: Sendable {
    /// The registration by the client, or by its backend.
    var registration: ClientRegistration
    /// Its attributes, by the party that answers for them.
    var attributes = ClientAttributes()
    /// The digest of the last stated registration. It does not change when an unreachable address
    /// is dropped: a client that registered the address would register it again.
    var digest = ""
    /// The position up to which each recommendation set is known to be built.
    var confirmed: [String: UInt64] = [:]
    /// The position of the log at which the client first registered.
    var since: UInt64 = 0
    /// The time at which its addresses were last stated, in milliseconds since 1970.
    var addressedAt: Int64 = 0

    /// The registration in stored form.
    var payload: Data { payload(of: registration.json(maskingTokens: false)) }

    /// The registration in stored form, made from `document`, which equals ``registration`` with
    /// its tokens.
    func payload(of document: JSONValue) -> Data {
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

    init(registration: ClientRegistration) {
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

    /// The registration as the shards see it.
    package func record(of client: String) -> ClientRecord {
        ClientRecord(
            client: client, registration: registration, attributes: attributes,
            confirmed: confirmed, since: since, addressedAt: addressedAt, digest: digest)
    }
}
