import Foundation
import WidgetModel

/// A change of a row as Debezium describes it: an envelope, with a schema or without, or a
/// CloudEvent.
struct DebeziumRecord {
    /// Members of `source` that differ when the same change is read again.
    private static let passing: Set = ["version", "snapshot", "query", "sequence", "xmin"]

    /// Members that only statements and bounds of transactions have.
    private static let others: Set = ["ddl", "tableChanges", "event_count"]

    let schema: String
    let table: String
    let change: RowChange
    /// Where the change is in the database's log.
    let position: String
    let time: String

    /// Returns `nil` for what changes no row: tombstones, rows of a snapshot, heartbeats, bounds of
    /// transactions, statements and messages.
    ///
    /// - Throws: ``Faults``, with their places.
    static func read(_ value: JSONValue, at place: String) throws(Faults) -> Self? {
        guard let object = try payload(of: value, at: place) else { return nil }
        guard object["specversion"] != nil else {
            guard let operation = object["op"] else {
                let names = object.members.map(\.name)
                let isOther =
                    !others.isDisjoint(with: names) || names.allSatisfy { $0.hasPrefix("ts_") }
                if isOther { return nil }
                throw Faults(
                    place,
                    "is not a change of Debezium: it has no `op`. Do not unwrap records, as "
                        + "ExtractNewRecordState does")
            }
            let source = object["source"]?.objectValue ?? JSONObject()
            let position = source.members.filter { !passing.contains($0.name) }
            let milliseconds = (source["ts_ms"] ?? object["ts_ms"])?.integerValue
            return try Self(
                operation, object, at: place, schema: source["schema"] ?? source["db"],
                table: source["table"],
                position: JSONValue.array(position.map(\.value)).text,
                time: milliseconds.map { DatabaseEvent.time(milliseconds: $0) }
                    ?? Date().ISO8601Format())
        }
        guard let data = try payload(of: object["data"] ?? .null, at: "\(place).data") else {
            return nil
        }
        let time = object["time"]?.stringValue ?? ""
        return try Self(
            object["iodebeziumop"] ?? data["op"] ?? .null, data, at: "\(place).data",
            schema: object["iodebeziumschema"] ?? object["iodebeziumdb"],
            table: object["iodebeziumtable"],
            position: JSONValue.array([object["source"] ?? .null, object["id"] ?? .null]).text,
            time: CloudEvent.isTimestamp(time) ? time : Date().ISO8601Format())
    }

    /// Returns the object, or the payload of one with a schema; `nil` for a tombstone.
    private static func payload(
        of value: JSONValue, at place: String
    ) throws(Faults) -> JSONObject? {
        var value = value
        if let payload = value.objectValue?["payload"], value.objectValue?["schema"] != nil {
            value = payload
        }
        if value == .null { return nil }
        guard let object = value.objectValue else {
            throw Faults(place, "must be an object, not \(value.shape)")
        }
        return object
    }

    private init?(
        _ operation: JSONValue, _ row: JSONObject, at place: String, schema: JSONValue?,
        table: JSONValue?, position: String, time: String
    ) throws(Faults) {
        func rows(_ name: String) throws(Faults) -> JSONObject {
            guard let object = row[name]?.objectValue else {
                let shape = (row[name] ?? .null).shape
                throw Faults("\(place).\(name)", "must be the row, an object, not \(shape)")
            }
            return object
        }
        // Without REPLICA IDENTITY FULL the row before is unknown.
        let before = row["before"]?.objectValue ?? JSONObject()
        switch operation {
        case "c": change = .insert(try rows("after"))
        case "u": change = .update(from: before, to: try rows("after"))
        case "d": change = .delete(before)
        case "t": change = .truncate
        case "r", "m": return nil
        default:
            throw Faults(
                "\(place).op", "must be c, u, d, t, r or m, not \(operation.text.forError)")
        }
        guard let schema = schema?.stringValue, let table = table?.stringValue else {
            throw Faults(
                "\(place).source",
                "must name `schema` (or `db`) and `table`; of CloudEvents the attributes "
                    + "iodebeziumschema (or iodebeziumdb) and iodebeziumtable")
        }
        (self.schema, self.table, self.position, self.time) = (schema, table, position, time)
    }
}

extension FeedMapping {
    /// Returns the events of records that a connector posts, one or an array of them.
    ///
    /// - Parameter complain: Is told what is wrong with a table, each time.
    /// - Throws: ``Faults``, each with its place.
    func events(
        of records: JSONValue, complain: (String) -> Void = { _ in }
    ) throws(Faults) -> [DatabaseEvent] {
        var faults = Faults()
        var events: [DatabaseEvent] = []
        for (index, value) in (records.arrayValue ?? [records]).enumerated() {
            do throws(Faults) {
                guard let record = try DebeziumRecord.read(value, at: "[\(index)]") else {
                    continue
                }
                let name = SQL.name(record.schema, record.table)
                let tables = mappings(of: record.schema, record.table)
                if tables.isEmpty {
                    complain(
                        "\(name) is not in the mapping: its changes are dropped; correct `table` or "
                            + "`schema` (of MySQL the database), or let the connector leave it out")
                }
                for table in tables {
                    var change = record.change
                    if case .delete(var row) = change, row[table.id] == JSONValue.null {
                        // Without REPLICA IDENTITY FULL only the key has values.
                        row[table.id] = nil
                        change = .delete(row)
                        complain(
                            "\(name): a deleted row has no `\(table.id)`, which counts as one of "
                                + "every \(table.entity); set REPLICA IDENTITY FULL")
                    }
                    // A position may be that of several tables.
                    let position = "\(record.position)\(table.quotedName)"
                    events += table.changes(by: change).map {
                        DatabaseEvent($0, at: position, time: record.time)
                    }
                }
            } catch {
                faults.add(error, under: "")
            }
        }
        guard faults.isEmpty else { throw faults }
        return events
    }
}
