import ClusterTestSupport
import GatewayTestSupport
import Testing

@testable import GatewayPostgres

@Suite(.enabled(if: PostgresServer.isInstalled)) struct ClusterSchemaTests {
    /// One row of a call of `append` by hand.
    private static func append(
        generation: Int64, count: Int = 1, probed: Int64 = 0, keys: [String] = []
    ) -> String {
        let list = keys.map { "'\($0)'" }.joined(separator: ",")
        let numbers = keys.indices.map { "\($0 + 1)" }.joined(separator: ",")
        return """
            tg.append(\(generation), 7, '\\x000102030405060708090a0b0c0d0e0f', \(count), \(probed),
              array[\(list)]::uuid[], array[\(numbers)]::bigint[], array[\(numbers)]::int[], 'r')
            """
    }

    /// A cluster for the tests that leave it as it is.
    private static let shared = Result { try ClusterFixture() }

    private static let key = "00000000-0000-0000-0000-00000000000"

    @Test func migratingAgainChangesNothingAndANewerDatabaseIsRefused() throws {
        let server = try PostgresServer.shared.get()
        let connection = try server.administration(database: try server.createDatabase())
        for expected in [1, 0] {
            try ClusterSchema.createRoles(connection)
            #expect(try ClusterSchema.migrate(connection) == expected)
            #expect(try ClusterSchema.hasRoles(connection))
            #expect(try ClusterSchema.presentVersion(connection) == ClusterSchema.version)
        }
        #expect(try connection.rows("SELECT last FROM tg.log").count == 1)
        let owners = try connection.rows(
            """
            SELECT count(*) FROM pg_class WHERE relnamespace = 'tg'::regnamespace
              AND relowner <> 'tg_owner'::regrole
            """)
        #expect(try owners.first?.integer(0) == 0)
        try connection.execute("INSERT INTO tg.migration VALUES (\(ClusterSchema.version + 1))")
        #expect(throws: PostgresError.self) { try ClusterSchema.migrate(connection) }
        #expect(throws: PostgresError.self) {
            try ClusterSchema.check(ClusterSchema.version - 1, isAtStart: true)
        }
        #expect(throws: PostgresError.self) {
            try ClusterSchema.NodeLogin("x; DROP")
        }
    }

    @Test func anOperatorMigratesWithoutBeingASuperuser() throws {
        let server = try PostgresServer.shared.get()
        let database = try server.createDatabase()
        try ClusterSchema.createRoles(try server.administration(database: database))
        try server.execute("CREATE ROLE operator LOGIN; GRANT tg_operator TO operator")
        let connection = try PostgresAdministration(
            try server.address(user: "operator", database: database))
        #expect(try ClusterSchema.migrate(connection) == 1)
    }

    @Test func everyFunctionHasAPinnedSearchPathAndIsClosedToThePublic() throws {
        let fixture = try Self.shared.get()
        let open = try fixture.administration().rows(
            """
            SELECT proname FROM pg_proc WHERE pronamespace = 'tg'::regnamespace
              AND (has_function_privilege('tg_observer', oid, 'EXECUTE')
                OR prosecdef AND NOT 'search_path=tg, pg_temp' = ANY (proconfig)
                OR NOT prosecdef AND proname NOT IN ('commit_append', 'commit_flush'))
            """)
        #expect(try open.map { try $0.text(0) } == [])
    }

    @Test func aNodeWritesByFunctionsOnlyAndAnObserverReadsNoPayload() throws {
        let fixture = try Self.shared.get()
        let node = try fixture.connection(as: "node1")
        let tables = try fixture.administration().rows(
            """
            SELECT relname::text FROM pg_class
            WHERE relnamespace = 'tg'::regnamespace AND relkind IN ('r', 'p')
            """
        ).map { try $0.text(0) }
        #expect(tables.count > 20)
        func expectRefusal(_ connection: PostgresAdministration, _ sql: String) {
            let error = #expect(throws: PostgresError.self) { try connection.execute(sql) }
            guard case .schema = error else {
                Issue.record("\(sql): \(error.map { "\($0)" } ?? "accepted")")
                return
            }
        }
        for table in tables {
            expectRefusal(node, "DELETE FROM tg.\(table)")
            expectRefusal(node, "TRUNCATE tg.\(table)")
            expectRefusal(node, "INSERT INTO tg.\(table) SELECT * FROM tg.\(table)")
        }
        expectRefusal(node, "CREATE TABLE tg.mine (one int)")
        expectRefusal(node, "UPDATE tg.node SET generation = 1")
        try fixture.execute("CREATE ROLE watcher LOGIN; GRANT tg_observer TO watcher")
        let observer = try fixture.connection(as: "watcher")
        try observer.execute("SELECT last, chain FROM tg.log; SELECT * FROM tg.node_seen")
        for query in [
            "SELECT body FROM tg.log", "SELECT wrapped FROM tg.secret",
            "SELECT payload FROM tg.registration", "SELECT * FROM tg.fence()",
        ] { expectRefusal(observer, query) }
    }

    @Test func batchesAreDenseAndEveryChainFollowsFromTheOneBefore() throws {
        let fixture = try ClusterFixture(slice: 10)
        let first = try fixture.connection(as: "node1")
        let second = try fixture.connection(as: "node2")
        #expect(try first.rows("SELECT * FROM tg.fence()").first?.integer(1) == 1)
        #expect(try second.rows("SELECT * FROM tg.fence()").first?.integer(0) == 2)
        // The second batch crosses a slice's border.
        for (connection, count, last) in [(first, 8, 8), (second, 5, 13), (first, 1, 14)] {
            let row = try #require(
                try connection.rows(
                    "SELECT * FROM \(Self.append(generation: 1, count: count, keys: []))"
                ).first)
            #expect(try row.integer(0) == Int64(last))
            #expect(try row.bytes(1).count == 16)
        }
        let broken = try first.rows(
            """
            SELECT last FROM (SELECT last, first, chain, lag(last) OVER w AS before,
                lag(chain) OVER w AS link FROM tg.log WINDOW w AS (ORDER BY last)) t
            WHERE last > 0 AND (first <> before + 1 OR chain <> substr(
              sha256(link || '\\x000102030405060708090a0b0c0d0e0f'), 1, 16))
            """)
        #expect(broken.isEmpty)
        #expect(try first.rows("SELECT node FROM tg.log ORDER BY last").count == 4)
        #expect(try first.rows("SELECT tg.slice()").first?.integer(0) == 1)
        #expect(try first.rows("SELECT tg.slice()").first?.integer(0) == 0)
    }

    @Test func theServerRefusesWhatMustNotBeWritten() throws {
        let fixture = try ClusterFixture()
        let node = try fixture.connection(as: "node1")
        func error(_ sql: String) -> PostgresError? {
            #expect(throws: PostgresError.self) { try node.execute(sql) }
        }
        try node.execute("SELECT tg.fence()")
        let key = Self.key + "1"
        try node.execute("SELECT \(Self.append(generation: 1, keys: [key]))")
        #expect(error("SELECT \(Self.append(generation: 0))") == .fenced)
        #expect(error("SELECT \(Self.append(generation: 1, keys: [key]))") == .raced)
        try node.execute("SELECT \(Self.append(generation: 1, probed: 1, keys: [Self.key + "2"]))")
        #expect(
            error(
                """
                BEGIN ISOLATION LEVEL REPEATABLE READ;
                SELECT \(Self.append(generation: 1))
                """) == .wrongIsolation)
        try node.execute("ROLLBACK")
        try fixture.execute("UPDATE tg.log_identity SET closed = true")
        #expect(error("SELECT \(Self.append(generation: 1))") == .logClosed)
        #expect(error("SELECT tg.take('{1}', '{}', '{}')") == .logClosed)
        try fixture.execute("CREATE ROLE stray LOGIN IN ROLE tg_node")
        let stray = try fixture.connection(as: "stray")
        #expect(throws: PostgresError.unknownNode) { try stray.execute("SELECT tg.fence()") }
    }
}
