import Foundation
import GatewayCluster
import GatewaySigning
import WidgetModel

/// The events that the messages of a slot announce.
///
/// A transaction arrives after its commit, in order, and as a whole. Its events may be posted while
/// it still arrives.
struct LogicalFeed {
    /// The start of 2000, from which PostgreSQL counts, in milliseconds since 1970.
    private static let epoch: Int64 = 946_684_800_000

    /// The events that are still to be posted; the caller removes them.
    var events: [DatabaseEvent] = []
    /// The position up to which the server may forget, once no event is left.
    private(set) var position: UInt64 = 0
    private let mapping: FeedMapping
    private let database: FeedDatabase
    private var relations: [UInt32: (relation: LogicalRelation, tables: [TableMapping])] = [:]
    private var transaction: (commit: UInt64, time: Int64, text: String)?
    /// The number of messages about rows in the transaction, which is the same each time.
    private var count = 0

    init(_ mapping: FeedMapping, _ database: FeedDatabase) {
        (self.mapping, self.database) = (mapping, database)
    }

    /// - Returns: What is wrong with a table, for people.
    mutating func receive(_ message: ReplicationMessage) throws(PostgresError) -> [String] {
        switch message {
        case .keepalive(let position, _):
            if transaction == nil { self.position = max(self.position, position) }
        case .change(.begin(let commit, let time)):
            let text = DatabaseEvent.time(milliseconds: Self.epoch + time / 1_000)
            transaction = (commit, time, text)
            count = 0
        case .change(.commit(let end)):
            position = max(position, end)
            transaction = nil
        case .change(.relation(var relation)):
            relation.replaceTypes(database.types)
            if database.partial.contains(relation.quotedName) { relation.distrustIdentity() }
            let tables = mapping.mappings(of: relation.schema, relation.table).map {
                $0.reading(relation)
            }
            relations[relation.number] = (relation, tables)
            return complaints(of: relation, tables)
        case .change(.insert(let number, let values)):
            let relation = try relation(number)
            return add(.insert(try relation.row(values)), of: number)
        case .change(.update(let number, let old, let values)):
            var complaints: [String] = []
            if old == nil, try self.relation(number).isIdentityFull {
                // A partition that was added since.
                relations[number]?.relation.distrustIdentity()
                complaints = try self.complaints(
                    of: self.relation(number), relations[number]?.tables ?? [])
            }
            let relation = try relation(number)
            let before = try relation.row(old, before: values)
            return complaints
                + add(.update(from: before, to: try relation.row(values)), of: number)
        case .change(.delete(let number, let old)):
            let relation = try relation(number)
            return add(.delete(try relation.row(old, before: [])), of: number)
        case .change(.truncate(let numbers)):
            return numbers.reduce(into: []) { $0 += add(.truncate, of: $1) }
        case .change(.other): break
        }
        return []
    }

    private func relation(_ number: UInt32) throws(PostgresError) -> LogicalRelation {
        guard let relation = relations[number]?.relation else { throw .unexpectedAnswer }
        return relation
    }

    /// - Returns: A complaint where the table is not mapped: the message about a relation may be
    ///   one about a partition, whose changes are those of the whole table.
    private mutating func add(_ change: RowChange, of number: UInt32) -> [String] {
        guard let transaction, let (relation, tables) = relations[number] else { return [] }
        count += 1
        let position = "\(transaction.commit)-\(count)-\(transaction.time)"
        for table in tables {
            for change in table.changes(by: change) {
                events.append(DatabaseEvent(change, at: position, time: transaction.text))
            }
        }
        guard tables.isEmpty else { return [] }
        return [
            "\(relation.quotedName) is published, but the mapping has no such table: its changes are "
                + "dropped; name it in the mapping, and run what `timelinectl feed init` prints"
        ]
    }

    private func complaints(of relation: LogicalRelation, _ tables: [TableMapping]) -> [String] {
        let names = relation.columns.map(\.name)
        var complaints = tables.flatMap(\.columns).filter { !names.contains($0) }.map {
            "\(relation.table) has no column `\($0)` in the log: each update counts as one of it; "
                + "correct the mapping. A generated column is not in the log: name the columns that "
                + "it is made of"
        }
        for table in tables {
            for attribute in table.attributes where attribute.form == .unknown {
                complaints.append(
                    "\(relation.table).\(attribute.column) has a type whose text may differ from "
                        + "that in a rule: a change reloads widgets of every value")
            }
        }
        if !tables.isEmpty, !relation.isIdentityFull {
            complaints.append(
                "\(relation.table), or a partition of it, has not REPLICA IDENTITY FULL: an update "
                    + "of any column counts as one of all, and the entity that a part leaves is not "
                    + "announced; run what `timelinectl feed init` prints, and `feed run` again")
        }
        return complaints
    }
}

extension LogicalRelation {
    var quotedName: String { SQL.name(schema, table) }
}

extension TableMapping {
    /// Returns a mapping that reads values of this table's types as `to_jsonb` and `::text` write
    /// them, which the outbox's trigger uses.
    fileprivate func reading(_ relation: LogicalRelation) -> Self {
        func type(_ name: String) -> UInt32 {
            relation.columns.first { $0.name.hasSameBytes(as: name) }?.type ?? 25
        }
        var table = self
        if type(id) == 1042 { table.idForm = .padded }
        for index in attributes.indices {
            table.attributes[index].form =
                switch type(attributes[index].column) {
                // Booleans, integers, texts, `date`, `uuid`; then `real`, `double` and `numeric`.
                case 16, 18...21, 23, 25, 26, 1042, 1043, 1082, 2950: .same
                case 700, 701, 1700: .number
                default: .unknown
                }
        }
        return table
    }
}

extension DatabaseEvent {
    /// The end of 2199, in milliseconds since 1970: a sender of a later time gets this one.
    private static let timeMax: Int64 = 7_258_118_399_000

    /// Returns a time since 1970 in the form of RFC 3339.
    static func time(milliseconds: Int64) -> String {
        let seconds = Double(min(max(milliseconds, 0), timeMax)) / 1_000
        return Date(timeIntervalSince1970: seconds).ISO8601Format()
    }

    /// Creates an event of a change feed. The same change at the same position is the same event,
    /// and another change is another one: a database that is restored may use a position again.
    init(_ change: Change, at position: String, time: String) {
        var bytes: [UInt8] = []
        change.append(to: &bytes)
        let digest = try? SHA256Digest(of: Array(position.utf8) + [0] + bytes)
        // Without memory for a digest, the position is unique until a restore.
        self.init(
            source: Self.feed, id: digest?.hexadecimal ?? position, time: time, change: bytes)
    }
}
