enum Outbox {
    /// The schema of the outbox, and the channel on which a waiting poller is notified.
    static let schema = "timeline_outbox"

    /// The table of the outbox and what fills it; may run again.
    ///
    /// - `dead` comes first in the key, so that pollers read past no event that was set aside.
    /// - Transactions that notify are committed one after the other. So a change notifies only
    ///   while a poller waits.
    static let sql = """
        CREATE SCHEMA IF NOT EXISTS \(schema);
        CREATE TABLE IF NOT EXISTS \(schema).event (
          id bigint GENERATED ALWAYS AS IDENTITY,
          event uuid NOT NULL DEFAULT gen_random_uuid(),
          created timestamptz NOT NULL DEFAULT now(),
          change jsonb NOT NULL,
          dead boolean NOT NULL DEFAULT false,
          reason text,
          PRIMARY KEY (dead, id));
        CREATE TABLE IF NOT EXISTS \(schema).poller (
          one boolean PRIMARY KEY DEFAULT true CHECK (one),
          waits_until timestamptz);
        INSERT INTO \(schema).poller DEFAULT VALUES ON CONFLICT DO NOTHING;
        CREATE OR REPLACE FUNCTION \(schema).announce(
          entity text, id text DEFAULT NULL, operation text DEFAULT 'update',
          properties text[] DEFAULT '{}', attributes jsonb DEFAULT '{}') RETURNS void
          LANGUAGE plpgsql AS $outbox$
        BEGIN
          INSERT INTO \(schema).event (change) VALUES (jsonb_strip_nulls(jsonb_build_object(
            'entity', entity, 'id', id, 'operation', operation, 'properties', properties,
            'attributes', attributes)));
          IF EXISTS (SELECT FROM \(schema).poller WHERE waits_until > clock_timestamp()) THEN
            PERFORM pg_notify('\(schema)', '');
          END IF;
        END
        $outbox$;
        CREATE OR REPLACE FUNCTION \(schema).both(old jsonb, new jsonb) RETURNS jsonb
          LANGUAGE sql IMMUTABLE AS $outbox$
          SELECT CASE WHEN old = new THEN new ELSE old || new END
        $outbox$;
        -- The login of the pollers needs:
        -- GRANT USAGE ON SCHEMA \(schema) TO poller;
        -- GRANT SELECT, UPDATE, DELETE ON ALL TABLES IN SCHEMA \(schema) TO poller;
        """
}

/// The trigger that announces the changes of a table's rows as those of an entity.
extension TableMapping {
    /// Returns the name of the function and of a trigger: another one for each table, column and
    /// entity.
    ///
    /// PostgreSQL cuts names after 63 bytes. A longer one ends with its hash (FNV-1a) instead, or a
    /// function would replace another.
    func triggerName(_ event: String) -> String {
        let name = "\(event) of \(schema).\(table).\(id) for \(entity)"
        guard name.utf8.count > 63 else { return name }
        let hash = name.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) {
            ($0 ^ UInt64($1)) &* 0x100_0000_01b3
        }
        var short = name
        while short.utf8.count > 46 { short.unicodeScalars.removeLast() }
        return short + " " + String(hash, radix: 16)
    }

    /// The statements, which may run again, also after a change of the options.
    var triggerSQL: String {
        let trigger = SQL.identifier(triggerName("change"))
        let function = "\(Outbox.schema).\(trigger)"
        let body = body
        var quote = "$outbox$"
        while body.utf8.contains(quote.utf8) { quote = "$outbox_" + quote.dropFirst() }
        return """
            CREATE OR REPLACE FUNCTION \(function)() RETURNS trigger
              LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS \(quote)
            \(body)
            \(quote);
            REVOKE ALL ON FUNCTION \(function)() FROM PUBLIC;
            CREATE OR REPLACE TRIGGER \(trigger) AFTER INSERT OR UPDATE OR DELETE ON \(quotedName)
              FOR EACH ROW EXECUTE FUNCTION \(function)();
            CREATE OR REPLACE TRIGGER \(SQL.identifier(triggerName("truncate"))) AFTER TRUNCATE ON \(quotedName)
              FOR EACH STATEMENT EXECUTE FUNCTION \(function)();
            """
    }

    private var body: String {
        let named = properties.map { SQL.literal($0.name) }.joined(separator: ", ")
        let names = isPart && !named.isEmpty ? "ARRAY[\(named)]" : "'{}'"
        let (gone, new) = isPart ? ("update", "update") : ("delete", "insert")
        return """
            DECLARE
              changed text[];
            BEGIN
              IF TG_OP = 'TRUNCATE' THEN
                PERFORM \(announcement(of: nil, gone, names, "'{}'"));
                RETURN NULL;
              END IF;
              IF TG_OP = 'UPDATE' AND \(row("OLD", [id])) *= \(row("NEW", [id])) THEN
            \(comparison)
                IF \(value("NEW", id)) IS NOT NULL THEN
                  PERFORM \(announcement(of: "NEW", "update", "changed", bothAttributes));
                END IF;
                RETURN NULL;
              END IF;
              IF TG_OP <> 'INSERT' AND \(value("OLD", id)) IS NOT NULL THEN
                PERFORM \(announcement(of: "OLD", gone, names, attributes(of: "OLD")));
              END IF;
              IF TG_OP <> 'DELETE' AND \(value("NEW", id)) IS NOT NULL THEN
                PERFORM \(announcement(of: "NEW", new, names, attributes(of: "NEW")));
              END IF;
              RETURN NULL;
            END
            """
    }

    /// Sets `changed`, which is empty for everything, or returns where nothing that is mapped changed.
    ///
    /// `*=` compares the bytes of values: it exists for every type, also for `json`, and finds NULL
    /// equal to NULL.
    private var comparison: String {
        guard !properties.isEmpty else {
            return """
                    IF OLD *= NEW THEN RETURN NULL; END IF;
                    changed := '{}';
                """
        }
        let changes = properties.map {
            "CASE WHEN \(row("OLD", [$0.column])) *<> \(row("NEW", [$0.column]))"
                + " THEN \(SQL.literal($0.name)) END"
        }
        let found = """
                changed := array_remove(ARRAY[\(changes.joined(separator: ",\n      "))], NULL);
            """
        let columns = attributes.map(\.column)
        guard !columns.isEmpty else {
            return found + "\n    IF changed = '{}' THEN RETURN NULL; END IF;"
        }
        return """
                IF \(row("OLD", columns)) *<> \(row("NEW", columns)) THEN
                  changed := '{}';
                ELSE
                \(found)
                  IF changed = '{}' THEN RETURN NULL; END IF;
                END IF;
            """
    }

    private func announcement(
        of row: String?, _ operation: String, _ properties: String, _ attributes: String
    ) -> String {
        let id = row.map { value($0, self.id) + "::text" } ?? "NULL"
        return "\(Outbox.schema).announce(\(SQL.literal(entity)), \(id), '\(operation)',"
            + " \(properties), \(attributes))"
    }

    private func attributes(of row: String) -> String {
        object { "to_jsonb(\(value(row, $0)))" }
    }

    /// An attribute that changed has the old value and the new one, and none if one of them is NULL:
    /// that matches every value.
    private var bothAttributes: String {
        object { column in
            let values = ["OLD", "NEW"].map { "to_jsonb(\(value($0, column)))" }
            return "\(Outbox.schema).both(\(values.joined(separator: ", ")))"
        }
    }

    private func object(_ value: (String) -> String) -> String {
        guard !attributes.isEmpty else { return "'{}'" }
        let members = attributes.map { "\(SQL.literal($0.name)), \(value($0.column))" }
        return "jsonb_build_object(\(members.joined(separator: ", ")))"
    }

    private func value(_ row: String, _ column: String) -> String {
        "\(row).\(SQL.identifier(column))"
    }

    private func row(_ row: String, _ columns: [String]) -> String {
        "ROW(\(columns.map { value(row, $0) }.joined(separator: ", ")))::record"
    }
}
