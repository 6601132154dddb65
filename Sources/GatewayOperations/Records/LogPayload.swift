import Foundation
import GatewayCore
import WidgetModel

/// The payloads of the log as bytes: JSON, so that an operator can read a
/// store with `sqlite3` alone.
package enum LogPayload {
    /// A row that cannot be read back; only a damaged store or a newer version writes one.
    package struct Unreadable: Error, CustomStringConvertible {
        /// The reason, for operators.
        let reason: String

        package var description: String { reason }
    }

    /// A change and the time at which it happened.
    package static func change(_ change: Change, time: String?) -> Data {
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
    package static func isChange(_ payload: Data, _ change: Change) throws -> Bool {
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

    package static func readChange(
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
    package static func catalog(contentType: String, body: [UInt8]) -> Data {
        Data(
            JSONValue.object([
                "contentType": .string(contentType),
                "body": .string(String(decoding: body, as: UTF8.self)),
            ]).serialized)
    }

    package static func readCatalog(
        _ payload: Data
    ) throws -> (contentType: String, body: [UInt8]) {
        guard let object = try JSONValue(parsing: Array(payload)).objectValue,
            let contentType = object["contentType"]?.stringValue,
            let body = object["body"]?.stringValue
        else { throw Unreadable(reason: "a catalog without document") }
        return (contentType, Array(body.utf8))
    }

    package static func reload(_ scope: ReloadScope) -> Data { Data(scope.json.serialized) }

    package static func readReload(_ payload: Data) throws -> ReloadScope {
        guard let scope = ReloadScope(try JSONValue(parsing: Array(payload))) else {
            throw Unreadable(reason: "a reload of nothing known")
        }
        return scope
    }

    /// A start of Live Activities with its channels.
    package static func start(_ start: ActivityStart) -> Data {
        let channels = attributesJSON(start.channels.mapValues { [$0] })
        return Data(JSONValue.object(["start": start.json, "channels": channels]).serialized)
    }

    package static func readStart(_ payload: Data) throws -> ActivityStart {
        let object = try JSONValue(parsing: Array(payload)).objectValue
        var start = try ActivityStart(object?["start"] ?? .null, limits: .none)
        for member in object?["channels"]?.objectValue?.members ?? [] {
            start.channels[member.name] = member.value.stringValue
        }
        return start
    }
}
