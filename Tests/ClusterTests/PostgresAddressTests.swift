import Testing

@testable import GatewayCluster

@Suite struct PostgresAddressTests {
    @Test(arguments: [
        "host=/run/postgresql user=a dbname=d",
        "postgres:///d?host=/run/postgresql&user=a",
        "postgres://a@one,two:5433/d?sslmode=verify-full&sslrootcert=ca&sslcert=c&sslkey=k",
        "postgres://a:secret@one/d?sslmode=verify-full&sslrootcert=ca",
        "host=/run/postgresql,one user=a dbname=d sslmode=verify-full sslrootcert=ca passfile=p",
    ])
    func safeAddressesAreAccepted(_ text: String) throws {
        #expect(try PostgresAddress(text).user == "a")
    }

    @Test(arguments: [
        ("postgres://a@one/d", "sslmode"),
        ("postgres://a:secret@one/d?sslmode=require&sslrootcert=ca", "sslmode"),
        ("host=/run,one user=a dbname=d", "sslmode"),
        ("postgres://a:secret@one/d?sslmode=verify-full", "sslrootcert"),
        ("postgres://a@one/d?sslmode=verify-full&sslrootcert=ca", "sslcert"),
        ("postgres://a@one/d?sslmode=verify-full&sslrootcert=ca&sslcert=c", "sslcert"),
        (
            "postgres://a:secret@one/d?sslmode=verify-full&sslrootcert=ca&sslcert=c&sslkey=k",
            "sslcert"
        ),
        ("host=/run user=a dbname=d options=-csynchronous_commit=off", "options"),
        ("host=/run user=a dbname=d hostaddr=127.0.0.1", "hostaddr"),
        ("host=/run user=a dbname=d port=1,2", "port"),
        ("host=/run user=a", "dbname"),
        ("user=a dbname=d", "host"),
        ("postgres://a:se%zzcret@one", "postgres://"),
    ])
    func unsafeAddressesAreRefusedWithTheOption(_ text: String, option: String) {
        let rejection = #expect(throws: PostgresAddress.Rejection.self) {
            try PostgresAddress(text)
        }
        #expect(rejection?.description.contains(option) == true)
        #expect(rejection?.description.contains("cret") == false)
    }

    @Test func theDescriptionHasNoPassword() throws {
        let address = try PostgresAddress(
            "postgres://a:secret@one,two/d?sslmode=verify-full&sslrootcert=ca")
        #expect("\(address)" == "a at one, two")
        var dumped = ""
        dump(address, to: &dumped)
        for text in [dumped, String(reflecting: address), "\([address])"] {
            #expect(!text.contains("secret"))
        }
    }

    @Test func aPasswordIsOnlyUsedWithSCRAMAndEveryServerHasItsOwnOptions() throws {
        let address = try PostgresAddress(
            "host=/run,one,two port=1,2,3 user=a dbname=d password=p sslmode=verify-full"
                + " sslrootcert=ca")
        #expect(address.servers.map { $0["host"] } == ["/run", "one", "two"])
        #expect(address.servers.map { $0["port"] } == ["1", "2", "3"])
        #expect(address.servers.map { $0["channel_binding"] } == ["prefer", "require", "require"])
        #expect(address.servers.allSatisfy { $0["target_session_attrs"] == "read-write" })
        #expect(address.servers.allSatisfy { $0["tcp_user_timeout"] == "3000" })
    }

    @Test func `each attempt begins with another server, and names all that are of no use`() throws
    {
        let address = try PostgresAddress("postgres://a@/b?host=/nowhere/1,/nowhere/2")
        #expect(
            (0...2).map { address.servers(at: $0).map { $0["host"] } } == [
                ["/nowhere/1", "/nowhere/2"], ["/nowhere/2", "/nowhere/1"],
                ["/nowhere/1", "/nowhere/2"],
            ])
        let connections: [() throws -> Void] = [
            { _ = try ClusterConnection(address.servers) },
            { _ = try PostgresAdministration(address) },
        ]
        for connect in connections {
            let error = #expect(throws: PostgresError.self) { try connect() }
            for name in ["/nowhere/1", "/nowhere/2"] {
                #expect("\(try #require(error))".contains(name))
            }
        }
    }
}
