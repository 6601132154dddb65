import APNsSimulator
import Foundation
import GRDB
import GatewayStorage
import GatewayTestSupport
import Testing
import WidgetModel

/// A store of the previous format goes on where it stopped.
@Suite(.alone) struct UpgradeTests {
    @Test func `a gateway goes on with its cursors, registrations and pending pushes`() async throws
    {
        let configuration = try GatewayConfiguration()
        let apns = try configuration.startAPNs()
        try configuration.writePush(
            [configuration.apnsSection(of: GameFixture.app)], port: apns.port,
            also: ["webhooks: { enabled: true }"])
        // The first start makes the keys, whose files have not changed.
        try configuration.start(asProcess: false).terminate()
        try PreviousStore.replaceStore(in: configuration.folder)
        var gateway = try configuration.start(asProcess: false)
        let backend = try gateway.token(
            app: GameFixture.app, scope: "changes:write clients:write operator")
        let client = try gateway.token(app: GameFixture.app, scope: "client", sub: "tablet")
        func ask(_ path: String) throws -> TestHTTPAnswer {
            try gateway.http().request("GET", "/v1/apps/\(GameFixture.app)/\(path)", token: backend)
        }
        func poll(since cursor: String) throws -> (stale: Set<String>, cursor: String) {
            let answer = try gateway.http().poll(
                "tablet", app: GameFixture.app, token: client, since: cursor)
            let stale = try answer.notifications.flatMap { try names(in: claims(of: $0)) }
            return (Set(stale), answer.cursor)
        }

        let polled = try poll(since: PreviousStore.cursor)
        #expect(polled.stale == ["detail character=panda", "detail character=owl"])
        #expect(try poll(since: polled.cursor).stale == [])
        let phone = try ask("clients/phone")
        #expect(phone.status == 200 && phone.text.contains(#""account":"42""#), "\(phone.text)")
        let address = try ask("clients/renderer/explain")["addresses"]?.arrayValue?.first
        #expect(address?.objectValue?["url"] == "https://receiver.invalid/hook")
        #expect(try #require(address?.objectValue?["failures"]?.integerValue) >= 1)
        // It knows the events that it accepted.
        let repeated = try gateway.http().post(
            [event(source: "before", id: "0", entity: "Character", key: "panda")],
            app: GameFixture.app, token: backend)
        #expect(repeated["duplicates"] == 1, "\(repeated.text)")
        // The pending push is sent. Attempts from before the upgrade have no cause.
        try await apns.until("pushed to", of: gateway) { $0.devices["aa01"]?.taken ?? 0 >= 1 }
        var causes: [JSONValue?] = []
        try await eventually("the push is listed", details: { "\(causes)" }) {
            let attempts = try ask("attempts?client=phone")["attempts"]?.arrayValue ?? []
            causes = attempts.map { $0.objectValue?["cause"] }
            return causes.count >= 3
        }
        #expect(causes == ["no-stream", nil, nil])

        gateway.terminate()
        gateway = try configuration.start(asProcess: false)
        #expect(try poll(since: polled.cursor).stale == [])
        #expect(try poll(since: PreviousStore.cursor).stale == polled.stale)
        gateway.terminate()
        #expect(apns.record.devices["aa01"]?.taken == 1)
        #expect(apns.record.violations.isEmpty)
        await apns.stop()
    }

    @Test func `a migration that is interrupted changes nothing and is repeated`() async throws {
        let directory = try GatewayProcess.temporaryDirectory()
        try PreviousStore.replaceStore(in: directory)
        try PreviousStore.execute(
            """
            CREATE TRIGGER interruption BEFORE INSERT ON grdb_migrations
            BEGIN SELECT RAISE(ABORT, 'interrupted'); END
            """, in: directory)
        let schema = try PreviousStore.schema(in: directory)
        #expect(throws: StoreError.self) {
            try SQLiteStore(directory: directory, opening: .existing)
        }
        #expect(try PreviousStore.schema(in: directory) == schema)
        try PreviousStore.execute("DROP TRIGGER interruption", in: directory)
        for _ in 0..<2 {
            let store = try SQLiteStore(directory: directory, opening: .existing)
            #expect(try store.hasNewestSchema())
            #expect(store.head == 6)
            let attempts = try await store.pushAttempts(
                PushAttemptQuery(app: GameFixture.app), limit: 9)
            #expect(attempts.count == 3)
            try await store.close()
        }
        #expect(try PreviousStore.schema(in: directory) != schema)
    }

    /// Not even older migrations run.
    @Test func `a store of a newer format is refused and stays as it is`() throws {
        let directory = try GatewayProcess.temporaryDirectory()
        try PreviousStore.replaceStore(in: directory)
        try PreviousStore.execute(
            "INSERT INTO grdb_migrations VALUES ('999 from the future')", in: directory)
        let schema = try PreviousStore.schema(in: directory)
        // The failed attempt has released the directory: the error stays the same.
        for _ in 0..<2 {
            #expect(throws: StoreError.newerVersion) {
                try SQLiteStore(directory: directory, opening: .existing)
            }
        }
        #expect(try PreviousStore.schema(in: directory) == schema)
    }
}

/// A store in the format of commit 47d5346d, the last one without migration 6: a client with a
/// stream, a phone with a pending push, a webhook that failed, a removed app.
///
/// A later gateway wrote the rows, whose encoding had not changed; the members that came since are
/// taken out. A release with new migrations replaces it by a store that the release before wrote.
private enum PreviousStore {
    /// The cursor that the client `tablet` was given when it registered.
    static let cursor = "AAAAAQE75iIAAAAAAAAAAdzj84mSN0NF"

    /// Puts the store into a data directory, in place of the one there.
    static func replaceStore(in directory: String) throws {
        for name in ["store.sqlite", "store.sqlite-wal", "store.sqlite-shm", "store.mark"] {
            try? FileManager.default.removeItem(atPath: directory + "/" + name)
        }
        // A minute ago: what waits is due, and nothing has expired.
        let time = Int64(Date().timeIntervalSince1970 - 60) * 1_000
        try execute(
            "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;"
                + (tables + rows).replacing("TIME", with: "\(time)"), in: directory)
    }

    static func execute(_ sql: String, in directory: String) throws {
        let database = try DatabaseQueue(path: directory + "/store.sqlite")
        try database.writeWithoutTransaction { try $0.execute(sql: sql) }
        try database.close()
    }

    /// The statements that made the tables, and the migrations that have run.
    static func schema(in directory: String) throws -> [String] {
        let database = try DatabaseQueue(path: directory + "/store.sqlite")
        defer { try? database.close() }
        return try database.read {
            try String.fetchAll(
                $0,
                sql: """
                    SELECT sql FROM sqlite_master WHERE type = 'table'
                    UNION SELECT identifier FROM grdb_migrations
                    """)
        }
    }

    private static let tables = """
        CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
        INSERT INTO grdb_migrations VALUES ('1 log'), ('2 registrations'), ('3 push'),
            ('4 attempts of an app'), ('5 change of an attempt');
        CREATE TABLE log (
            sequence INTEGER PRIMARY KEY, app TEXT NOT NULL, type INTEGER NOT NULL, source TEXT,
            event_id TEXT, event_key INTEGER, accepted_at INTEGER NOT NULL, payload BLOB
        ) STRICT;
        CREATE INDEX log_event ON log (event_key) WHERE event_key IS NOT NULL;
        CREATE TABLE catalog (
            app TEXT NOT NULL, sequence INTEGER NOT NULL, payload BLOB, PRIMARY KEY (app, sequence)
        ) STRICT;
        CREATE TABLE epoch (
            ordinal INTEGER PRIMARY KEY, id INTEGER NOT NULL, opened_at_sequence INTEGER NOT NULL,
            voided INTEGER NOT NULL, opened_at INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB) STRICT, WITHOUT ROWID;
        CREATE TABLE state (
            one INTEGER PRIMARY KEY CHECK (one = 1), floor INTEGER NOT NULL, secret BLOB NOT NULL,
            event_hash_key BLOB NOT NULL
        ) STRICT;
        CREATE TABLE registration (
            app TEXT NOT NULL, client TEXT NOT NULL, updated_at INTEGER NOT NULL, payload BLOB,
            PRIMARY KEY (app, client)
        ) STRICT;
        CREATE TABLE registration_seen (
            app TEXT NOT NULL, client TEXT NOT NULL, seen_at INTEGER NOT NULL,
            PRIMARY KEY (app, client)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX registration_seen_at ON registration_seen (seen_at);
        CREATE TABLE registration_attribute (
            app TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, client TEXT NOT NULL,
            PRIMARY KEY (app, name, value, client)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX registration_attribute_client ON registration_attribute (app, client);
        CREATE TABLE push_client (
            app TEXT NOT NULL, client TEXT NOT NULL, payload BLOB NOT NULL,
            PRIMARY KEY (app, client)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE push_attempt (
            number INTEGER PRIMARY KEY, at INTEGER NOT NULL, app TEXT NOT NULL,
            client TEXT NOT NULL, channel TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT,
            reference TEXT, milliseconds INTEGER NOT NULL, sequence INTEGER
        ) STRICT;
        CREATE INDEX push_attempt_client ON push_attempt (app, client, number);
        CREATE INDEX push_attempt_app ON push_attempt (app, number);
        CREATE TABLE provider_token (
            issuer TEXT PRIMARY KEY, issued_at INTEGER NOT NULL, token TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;
        """

    // Without the id of the log's mark, which names the file that it is in.
    private static let rows = #"""
        INSERT INTO state VALUES (
            1, 0, X'0D0655CD59926006B06EEFDC956771C3D7170C43596AC98B316351CEFCB1512B',
            X'D02258EB30A230AD81FA486814E28B3E');
        INSERT INTO meta VALUES ('rings', CAST('issuer keys webhooks' AS BLOB));
        INSERT INTO epoch VALUES (1, -7342068759370406366, 0, 0, TIME);
        INSERT INTO log VALUES
            (1, 'com.mygame', 2, NULL, NULL, NULL, TIME, NULL),
            (2, 'com.mygame', 1, 'before', '0', -7175771080165867833, TIME,
                CAST('{"data":{"entity":"Character","id":"panda"}}' AS BLOB)),
            (3, 'com.mygame', 1, 'before', '1', -7353267800572550299, TIME,
                CAST('{"data":{"entity":"Character","id":"owl"}}' AS BLOB)),
            (4, 'com.mygame', 3, NULL, NULL, NULL, TIME, CAST('{"client":"gone"}' AS BLOB)),
            (5, 'com.other', 2, NULL, NULL, NULL, TIME, NULL),
            (6, 'com.other', 4, NULL, NULL, NULL, TIME, NULL);
        INSERT INTO catalog VALUES ('com.mygame', 1, CAST('{"contentType":"application/yaml",\#
        "body":"app: com.mygame\nentities: { Character: { properties: [health] } }\n\#
        intents: { One: { parameters: [{ name: character, type: Character }] } }\nwidgets:\n\#
          - kind: detail\n    configuration: appIntent\n    intent: One\n\#
            families: [systemSmall]\n    collapse: 0\n\#
            dependsOn: [{ entity: Character, match: { id: $character } }]\n"}' AS BLOB));
        INSERT INTO registration VALUES
            ('com.mygame', 'tablet', TIME, CAST('{"registration":{"platform":"iOS","widgets":[\#
        {"kind":"detail","family":"systemSmall","parameters":{"character":"panda"},"count":1},\#
        {"kind":"detail","family":"systemSmall","parameters":{"character":"owl"},"count":1}],\#
        "recommendations":[],"controls":[],"delivery":[]},"digest":"q2irlxhfiyki",\#
        "confirmed":{},"since":1,"addressedAt":TIME}' AS BLOB)),
            ('com.mygame', 'phone', TIME, CAST('{"registration":{"platform":"iOS",\#
        "attributes":{"account":"42"},"widgets":[{"kind":"detail","family":"systemSmall",\#
        "parameters":{"character":"panda"},"count":1}],"recommendations":[],"controls":[],\#
        "delivery":[{"type":"stream"},{"type":"apns","pushType":"widgets","token":"aa01",\#
        "environment":"production"}]},"backend":{"account":"42"},"digest":"3isa0g7ji7deo",\#
        "confirmed":{},"since":1,"addressedAt":TIME}' AS BLOB)),
            ('com.mygame', 'renderer', TIME, CAST('{"registration":{"platform":"iOS",\#
        "widgets":[{"kind":"detail","family":"systemSmall","parameters":{"character":"owl"},\#
        "count":1}],"recommendations":[],"controls":[],"delivery":[{"type":"webhook",\#
        "url":"https://receiver.invalid/hook"}]},"digest":"2s5v1b0mkexsh","confirmed":{},\#
        "since":1,"addressedAt":TIME}' AS BLOB));
        INSERT INTO registration_seen VALUES ('com.mygame', 'tablet', TIME),
            ('com.mygame', 'phone', TIME), ('com.mygame', 'renderer', TIME);
        INSERT INTO registration_attribute VALUES ('com.mygame', 'account', '42', 'phone');
        INSERT INTO push_client VALUES
            ('com.mygame', 'phone', CAST('{"lanes":[{"sort":"timelines","savedAt":TIME,\#
        "latest":2,"confirmed":1,"urgency":2,"answers":false,"held":0,"grace":0,"addresses":[\#
        {"id":3841638976358537869,"delivered":1,"spokeSince":0,"givenUp":0,"failures":2,\#
        "repeats":0,"awaits":false,"usable":true,"wait":1635,"repeatWait":0}]}],"addresses":[\#
        {"id":3841638976358537869,"environment":0,"standing":0}],"budget":{"savedAt":TIME,\#
        "widgets":777600000,"controls":777600000,"background":259200000,"pushed":[]}}' AS BLOB)),
            ('com.mygame', 'renderer', CAST('{"lanes":[{"sort":"timelines","savedAt":TIME,\#
        "latest":3,"confirmed":1,"urgency":2,"answers":false,"held":0,"grace":0,"addresses":[\#
        {"id":-8540371573781012955,"delivered":2,"spokeSince":0,"givenUp":0,"failures":1,\#
        "repeats":0,"awaits":false,"usable":true,"wait":5093,"repeatWait":0}]}],"addresses":[\#
        {"id":-8540371573781012955,"webhook":{"savedAt":TIME,"message":1,\#
        "content":3320517164478732180,"delivered":false,"failures":1,"failingFor":635,\#
        "disabled":0}}]}' AS BLOB));
        INSERT INTO push_attempt VALUES
            (1, TIME, 'com.mygame', 'renderer', 'webhook', 'retry', 'unresolved',
                'msg_2c3cb9f80d7c0442', 12, 3),
            (2, TIME, 'com.mygame', 'phone', 'widgets', 'retry', 'not-connected',
                'f04540e5-c064-47d5-980b-6cb04b309c9d', 24, 2),
            (3, TIME, 'com.mygame', 'phone', 'widgets', 'retry', 'not-connected',
                'dec306b9-5eab-4541-b4d9-786031182ceb', 3, 2);
        INSERT INTO provider_token VALUES ('TEAM123456.KEY7654321', TIME / 1000, 'a.b.c');
        """#
}
