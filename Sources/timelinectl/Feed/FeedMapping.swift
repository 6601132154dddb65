import CatalogModel
import WidgetModel

/// The mapping file of a change feed: what the rows of each table are to a catalog.
struct FeedMapping: Sendable {
    private static let tablesMax = 1_000

    let tables: [TableMapping]

    /// - Throws: ``Faults``, each with its place.
    init(_ value: JSONValue) throws(Faults) {
        var faults = Faults()
        guard var reader = MemberReader(value, at: "", &faults) else { throw faults }
        var tables: [TableMapping] = []
        let elements = reader.array("tables", countMax: Self.tablesMax, &faults) ?? []
        for (index, element) in elements.enumerated() {
            if let table = TableMapping(element, at: "tables[\(index)]", &faults) {
                tables.append(table)
            }
        }
        if elements.isEmpty, faults.isEmpty { faults.add("tables", "must have a table") }
        reader.refuseUnknown(&faults)
        guard faults.isEmpty else { throw faults }
        self.tables = tables
    }

    /// Returns the mappings of a table, which may be several entities.
    func mappings(of schema: String, _ table: String) -> [TableMapping] {
        tables.filter { $0.schema.hasSameBytes(as: schema) && $0.table.hasSameBytes(as: table) }
    }

    // MARK: Catalog

    /// Returns what a catalog needs of the mapped tables and does not get, and the reverse.
    func differences(from catalog: Catalog) -> Faults {
        var faults = Faults()
        let rules =
            catalog.widgets.flatMap { $0.dependsOn + ($0.recommendations ?? []) }
            + catalog.activities.flatMap(\.dependsOn)
        for (index, table) in tables.enumerated() {
            let place = "tables[\(index)]"
            let own = rules.filter { $0.entity.hasSameBytes(as: table.entity) }
            guard !own.isEmpty else {
                faults.add(
                    "\(place).entity",
                    "no rule of the catalog uses the table \(table.table), which is "
                        + "`\(table.entity)`",
                    hint: table.entity, among: Set(rules.map(\.entity)).sorted())
                continue
            }
            if !own.contains(where: \.properties.isEmpty) {
                let used = Set(own.flatMap(\.properties)).sorted()
                for column in table.properties where !used.contains(column.name) {
                    faults.add(
                        "\(place).properties", "no rule uses `\(column.name)`", hint: column.name,
                        among: used)
                }
            }
            let compared = Set(own.flatMap(\.match).map(\.attribute)).subtracting(["id"]).sorted()
            for column in table.attributes where !compared.contains(column.name) {
                faults.add(
                    "\(place).attributes", "no rule compares `\(column.name)`", hint: column.name,
                    among: compared)
            }
            for name in compared where !table.attributes.contains(where: { $0.name == name }) {
                faults.add(
                    "\(place).attributes",
                    "lack `\(name)`, which a rule compares: a change reloads widgets of every value"
                )
            }
        }
        return faults
    }

    // MARK: SQL

    /// Returns the SQL of a publication and a slot of this name; may run again.
    func sql(slot: String) -> String {
        var names: [String] = []
        for name in tables.map(\.quotedName) where !names.contains(name) { names.append(name) }
        let publication = SQL.identifier(slot)
        let calls = names.map { "CALL pg_temp.log_rows(\(SQL.literal($0)));" }
            .joined(separator: "\n")
        return """
            -- Not in one transaction: the slot has to begin after the publication. wal_level must be
            -- logical. The login of the feed needs: ALTER ROLE feed REPLICATION
            SET lock_timeout = '2s';
            -- The log then has the row before each change, which says what changed. Without it, an
            -- update of any column counts as one of all.
            CREATE OR REPLACE PROCEDURE pg_temp.log_rows(root regclass) LANGUAGE plpgsql AS $feed$
            DECLARE
              one regclass;
            BEGIN
              FOR one IN SELECT oid FROM pg_class
                WHERE (oid = root OR oid IN (SELECT relid FROM pg_partition_tree(root)))
                  AND relreplident <> 'f' AND relkind IN ('r', 'p')
              LOOP
                EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', one);
              END LOOP;
            END $feed$;
            \(calls)
            DO $feed$ BEGIN
              -- Again, and with no publication where one fails: it would stop writes to a table
              -- without a key.
            \(calls)
              IF NOT EXISTS (SELECT FROM pg_publication WHERE pubname = '\(slot)') THEN
                CREATE PUBLICATION \(publication) WITH (publish_via_partition_root = true);
              END IF;
              ALTER PUBLICATION \(publication) SET TABLE
              \(names.joined(separator: ",\n  "));
              PERFORM set_config('timeline_feed.publication', '\(slot)', false);
            END $feed$;
            -- A slot waits for the transactions of now.
            RESET lock_timeout;
            SELECT pg_create_logical_replication_slot('\(slot)', 'pgoutput')
              WHERE current_setting('timeline_feed.publication', true) = '\(slot)' AND NOT EXISTS (
                SELECT FROM pg_replication_slots WHERE slot_name = '\(slot)'
                  AND database = current_database() AND wal_status IS DISTINCT FROM 'lost');
            """
    }
}

extension TableMapping {
    fileprivate init?(_ value: JSONValue, at place: String, _ faults: inout Faults) {
        guard var reader = MemberReader(value, at: place, &faults) else { return nil }
        let limits = Limits()
        let limit = limits.stringBytesMax
        let table = reader.string("table", required: true, limit: limit, &faults)
        let schema = reader.string("schema", limit: limit, &faults)
        let entity = reader.string("entity", required: true, limit: limit, &faults)
        let id = reader.string("id", limit: limit, &faults)
        func columns(
            _ name: String, countMax: Int, _ reader: inout MemberReader, _ faults: inout Faults
        ) -> [Column] {
            let texts = reader.strings(name, limit: 2 * limit, countMax: countMax, &faults)
            return texts.compactMap { text in
                let column = Column(argument: text)
                if column == nil {
                    faults.add(reader.path(name), "`\(text.forError)` is not column[=name]")
                }
                return column
            }
        }
        let properties = columns(
            "properties", countMax: limits.propertiesMax, &reader, &faults)
        let attributes = columns(
            "attributes", countMax: limits.attributesMax, &reader, &faults)
        if attributes.contains(where: { $0.name == "id" }) {
            faults.add(
                reader.path("attributes"), "an attribute cannot be called id; use `id`, or =NAME")
        }
        let part = reader.value("part")
        if let part, part.boolValue == nil {
            faults.add(reader.path("part"), "must be true or false, not \(part.shape)")
        }
        reader.refuseUnknown(&faults)
        guard let table, let entity else { return nil }
        self.init(
            schema: schema ?? "public", table: table, entity: entity, id: id ?? "id",
            properties: properties, attributes: attributes, isPart: part?.boolValue ?? false)
    }
}
