import ClusterTestSupport
import Foundation
import GatewayTestSupport
import Testing

@testable import GatewayPostgres

@Suite(.enabled(if: PostgresServer.isInstalled)) struct PostgresSessionTests {
    @Test func valuesComeBackAsTheyWereSent() throws {
        let server = try PostgresServer.shared.get()
        let echo = PostgresStatement(
            "echo",
            sql: """
                SELECT $1::bigint, $2::text, $3::bytea, $4::bigint[] = '{1,-2}', $5::int[] = '{3}',
                    ($6::uuid[])[2], $7::bytea[] = array[''::bytea, '\\x01'], $8::boolean,
                    $9::bigint, $10::uuid[] = '{}', ''::bytea, $6::uuid[], $10::uuid[],
                    $11::uuid, $12::text[] = '{"",é}', ($13::bytea[])[2] IS NULL,
                    array[NULL::uuid], array[1, 2]
                """)
        let driver = SessionDriver(try server.address(), preparing: [echo])
        try driver.open()
        let key = UInt128(0xFF) << 120 | 7
        let row = try #require(
            try driver.answers(
                PostgresQuery(
                    echo,
                    [
                        .integer(.min), .text("é\"'"), .bytes([0, 255]), .integers([1, -2]),
                        .smallIntegers([3]), .uuids([0, key]), .byteArrays([[], [1]]),
                        .boolean(true), .null, .uuids([]), .uuid(key), .texts(["", "é"]),
                        .byteArrays([[1], nil]),
                    ]))[0].get().first)
        #expect(try row.integer(0) == .min)
        #expect(try row.text(1) == "é\"'")
        #expect(try row.bytes(2) == [0, 255])
        for column in [3, 4, 6, 7, 9] { #expect(try row.boolean(column), "column \(column)") }
        #expect(try row.uuid(5) == key)
        #expect(row.isNull(8))
        #expect(try row.bytes(10) == [])
        #expect(throws: PostgresError.unexpectedAnswer) { try row.integer(8) }
        #expect(throws: PostgresError.unexpectedAnswer) { try row.integer(5) }
        #expect(try row.uuids(11) == [0, key])
        #expect(try row.uuids(12) == [])
        #expect(try row.uuid(13) == key)
        #expect(try row.boolean(14) && row.boolean(15))
        for column in [8, 5, 16, 17] {
            #expect(throws: PostgresError.unexpectedAnswer) { try row.uuids(column) }
        }
        #expect(throws: PostgresError.unexpectedAnswer) { try row.bytes(18) }
    }

    @Test func aFailedQueryLeavesTheOthersOfOneWriteAlone() throws {
        let server = try PostgresServer.shared.get()
        let one = PostgresStatement("one", sql: "SELECT 1 / $1::bigint")
        let driver = SessionDriver(try server.address(), preparing: [one])
        try driver.open()
        let answers = try driver.answers(
            PostgresQuery(one, [.integer(1)]), PostgresQuery(one, [.integer(0)]),
            PostgresQuery(one, [.integer(-1)]))
        #expect(try answers[0].get().first?.integer(0) == 1)
        #expect(
            throws: PostgresError.other(sqlState: "22012", message: "division by zero")
        ) { try answers[1].get() }
        #expect(try answers[2].get().first?.integer(0) == -1)
    }

    @Test func rowsOfAStreamedStatementComeOneByOneAndInOrder() throws {
        let server = try PostgresServer.shared.get()
        let one = PostgresStatement("one", sql: "SELECT 1")
        let many = PostgresStatement(
            "many", isStreamed: true,
            sql: "SELECT n, repeat('x', 1 << 20)::bytea FROM generate_series(1, 20) n")
        let driver = SessionDriver(try server.address(), preparing: [one, many])
        try driver.open()
        let answers = try driver.answers(
            PostgresQuery(one), PostgresQuery(many), PostgresQuery(one), PostgresQuery(many))
        #expect(try answers.map { try $0.get().count } == [1, 0, 1, 0])
        let rows = driver.events.compactMap { event -> Int64? in
            if case .row(let row) = event { try? row.integer(0) } else { nil }
        }
        #expect(rows == Array(1...20) + Array(1...20))
        // A row fills the socket's buffer several times, so they do not come together.
        #expect(driver.mostRowsAtOnce < 20)
    }

    @Test func aWarningIsAFailure() throws {
        let server = try PostgresServer.shared.get()
        let warn = PostgresStatement("warn", sql: "SELECT warn($1)")
        try server.execute(
            """
            CREATE FUNCTION warn(is_warning boolean) RETURNS int LANGUAGE plpgsql AS $$ BEGIN
                IF is_warning THEN RAISE WARNING 'canceling wait'; ELSE RAISE NOTICE 'none'; END IF;
                RETURN 1; END $$
            """)
        let driver = SessionDriver(try server.address(), preparing: [warn])
        try driver.open()
        let answers = try driver.answers(
            PostgresQuery(warn, [.boolean(true)]), PostgresQuery(warn, [.boolean(false)]))
        #expect(throws: PostgresError.warned(message: "canceling wait")) { try answers[0].get() }
        #expect(try answers[1].get().count == 1)
    }

    @Test func aKilledServerIsLostAndAMissingOneToo() throws {
        let server = try PostgresServer()
        let sleep = PostgresStatement("sleep", sql: "SELECT pg_sleep(60)")
        let driver = SessionDriver(try server.address(), preparing: [sleep])
        try driver.open()
        driver.session.send([PostgresQuery(sleep)])
        server.kill()
        guard case .connectionLost = try driver.loss() else {
            throw TestFailure("another error")
        }
        #expect(driver.session.interest == nil)
        let late = SessionDriver(try server.address(), preparing: [sleep])
        guard case .connectionLost = try late.loss() else { throw TestFailure("another error") }
    }

    @Test func aSessionThatAnOperatorEndsHasAnUnknownOutcome() throws {
        let server = try PostgresServer.shared.get()
        let sleep = PostgresStatement("sleep", sql: "SELECT pg_sleep(60)")
        let driver = SessionDriver(try server.address(), preparing: [sleep])
        try driver.open()
        driver.session.send([PostgresQuery(sleep)])
        try server.execute("SELECT pg_terminate_backend(\(driver.session.serverProcess))")
        let error = try driver.loss()
        guard case .connectionLost = error else { throw TestFailure("\(error)") }
        #expect(!error.wroteNothing)
    }

    @Test func aMissingTableIsASchemaThatDoesNotFit() throws {
        let server = try PostgresServer.shared.get()
        let missing = PostgresStatement("missing", sql: "SELECT * FROM tg.log")
        let driver = SessionDriver(try server.address(), preparing: [missing])
        guard case .schema = try driver.loss() else { throw TestFailure("another error") }
    }

    @Test func sqlStatesAreTyped() {
        let typed: [String: PostgresError] = [
            "TG001": .fenced, "TG002": .raced, "TG003": .wrongIsolation, "TG004": .unknownNode,
            "TG005": .logClosed, "55P03": .lockTimeout, "40P01": .raced,
            "42P01": .schema(reason: "m"),
            "40001": .other(sqlState: "40001", message: "m"),
        ]
        for (state, error) in typed {
            #expect(PostgresError(sqlState: state, message: "m") == error)
        }
    }
}
