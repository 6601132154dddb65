import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// Crowds that send nothing, and peers that read nothing.
@Suite("Crowd attacks", .serialized)
struct CrowdAttackTests {
    private static let app = "com.mygame"

    private static func openFiles(_ pid: Int32) -> Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd").count) ?? 0
    }

    /// 600 connections are opened to a process that may open 256 files, while a backend posts. The
    /// process keeps running, the stream stays open, each post is answered, and descriptors are
    /// left.
    ///
    /// - Parameter given: The number of files that the process inherits from its parent.
    @Test("A crowd does not take the last descriptors", arguments: [0, 90])
    func descriptors(given: Int) async throws {
        _ = raiseDescriptorLimit()
        let open = "for ((i = 10; i < 10 + \(given); i++)); do eval \"exec $i</dev/null\"; done"
        let process = try GatewayProcess(
            wrapper: ["prlimit", "--nofile=256:256", "bash", "-c", open + "; exec \"$0\" \"$@\""])
        let backend = try process.token(
            app: Self.app, scope: "catalog:write changes:write clients:write")
        let http = process.http()
        let catalog = try await http.send(
            "PUT", "/v1/apps/\(Self.app)/catalog", token: backend,
            headers: [("Content-Type", "application/yaml")], body: Catalogs.game)
        #expect(catalog.status == 201)
        let registered = try await http.send(
            "PUT", "/v1/apps/\(Self.app)/clients/crowd", token: backend,
            body: Documents.registration("hero").text)
        #expect(registered.status == 201)
        let token = try process.token(app: Self.app, scope: "client", sub: "crowd")
        let stream = process.stream(
            app: Self.app, client: "crowd", token: token,
            from: registered["cursor"]?.stringValue)
        #expect(stream.head()?.status == 200)
        let (statuses, most) = try await elsewhere { () -> ([Int], Int) in
            var poster = try RawClient(port: process.port, .init("http/1.1")).handshake()
            var statuses: [Int] = []
            var most = 0
            var crowd: [RawClient] = []
            for number in 0..<400 {
                if number >= 20, crowd.count < 600 {
                    for _ in 0..<20 {
                        crowd.append(try RawClient(port: process.port, nil))
                    }
                }
                var status = Self.post(number, poster, backend)
                if status == 0 {
                    // Its connection was idle for too long, as after a stall of this machine: any
                    // client opens another one.
                    poster = try RawClient(port: process.port, .init("http/1.1")).handshake()
                    status = Self.post(number, poster, backend)
                }
                statuses.append(status)
                most = max(most, Self.openFiles(process.pid))
            }
            return (statuses, most)
        }
        #expect(statuses.allSatisfy { $0 == 202 }, "\(statuses.filter { $0 != 202 })")
        #expect(most < 256 - 32, "\(most) files were open")
        guard case .block = stream.next() else {
            Issue.record("the stream told nothing")
            return
        }
        stream.close()
        #expect(process.terminate() == .status(0))
    }

    private static func post(_ number: Int, _ socket: RawClient, _ backend: String) -> Int {
        let event: JSONValue = [
            "specversion": "1.0", "type": "turn", "source": "crowd", "id": .string("\(number)"),
            "data": [
                "entity": "CharacterDetail", "id": "hero", "properties": ["healthLevel"],
            ],
        ]
        let body = event.text
        socket.send(
            """
            POST /v1/apps/\(app)/changes HTTP/1.1\r
            Host: localhost\r
            Authorization: Bearer \(backend)\r
            Content-Type: application/cloudevents+json\r
            Content-Length: \(body.utf8.count)\r
            \r
            \(body)
            """)
        let bytes = socket.readUntil { !RawAnswer.all(in: $0).isEmpty }.bytes
        return RawAnswer.all(in: bytes).first?.status ?? 0
    }

    /// Incomplete request heads on the plain port: other requests are answered, and the incomplete
    /// ones are closed.
    @Test("Half heads on the plain port are in nobody's way") func plainPort() async throws {
        _ = raiseDescriptorLimit()
        let admin = try GatewayProcess.freePort()
        let process = try GatewayProcess(
            admin: "127.0.0.1:\(admin)", wrapper: ["prlimit", "--nofile=400:400"])
        try await elsewhere {
            var crowd: [RawClient] = []
            for number in 0..<600 {
                let socket = try RawClient(port: admin, nil)
                socket.send("GET /livez HTTP/1.1\r\nHost: x\r\nX-Half: ")
                crowd.append(socket)
                guard number % 100 == 99 else { continue }
                let probe = try RawClient(port: admin, nil)
                probe.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
                let bytes = probe.readUntil { !RawAnswer.all(in: $0).isEmpty }.bytes
                #expect(RawAnswer.all(in: bytes).first?.status == 200)
                // The TLS port still has descriptors.
                _ = try RawClient(port: process.port, .init("http/1.1")).handshake()
            }
            #expect(Self.openFiles(process.pid) < 200)
            // The last ones are closed at their deadline.
            #expect(crowd.last?.readUntil().isClosed == true)
        }
    }
}

/// Gateways that are full, or seem to be.
@Suite("Full gateways")
struct FullGatewayTests {
    private static let app = "com.mygame"

    private static func withGateway(
        limits: String, _ body: @escaping @Sendable (any TestGateway) throws -> Void
    ) async throws {
        try await elsewhere {
            let lines = ["publicURL: https://gateway.test", "limits: { \(limits) }"]
            try body(GatewayConfiguration(lines).start(asProcess: true))
        }
    }

    /// 20 clients on slow links have begun posts of 40 KB, five times what the gateway may hold. It
    /// reserves only what has arrived, so a small post fits. When the rest arrives, the gateway
    /// accepts one post after the other.
    @Test("Bodies take room as they arrive, and those that wait for more all get it")
    func slowBodies() async throws {
        try await Self.withGateway(limits: "requestBytesInWork: 150000") { gateway in
            let backend = try gateway.token(
                app: Self.app, scope: "catalog:write changes:write clients:write")
            try gateway.http().putCatalog(Catalogs.game, app: Self.app, token: backend)
            let bodies = (0..<20).map { post -> [UInt8] in
                let events = (0..<250).map { Documents.event("\(post)-\($0)") }
                return Array(JSONValue.array(events).text.utf8)
            }
            let sockets = try bodies.map { body in
                let socket = try RawClient(port: gateway.port, .init("http/1.1")).handshake()
                socket.send(
                    """
                    POST /v1/apps/\(Self.app)/changes HTTP/1.1\r
                    Host: localhost\r
                    Authorization: Bearer \(backend)\r
                    Content-Type: application/cloudevents-batch+json\r
                    Content-Length: \(body.count)\r
                    \r

                    """)
                socket.send(Array(body[..<1_000]))
                return socket
            }
            try blockUntil("every body is under way") {
                let held = try gateway.metrics()["timeline_gateway_request_in_work_bytes"] ?? 0
                return held >= 20 * 4_096
            }
            let small = try gateway.http().post(
                [Documents.event("small")], app: Self.app, token: backend)
            #expect(small.status == 202, "\(small.text)")
            for (socket, body) in zip(sockets, bodies) { socket.send(Array(body[1_000...])) }
            for socket in sockets {
                let bytes = socket.readUntil { !RawAnswer.all(in: $0).isEmpty }.bytes
                #expect(RawAnswer.all(in: bytes).first?.status == 202)
            }
            try blockUntil("nothing is held") {
                try gateway.metrics()["timeline_gateway_request_in_work_bytes"] == 0
            }
        }
    }

    /// One of the admin port, whose time stays the same, is used again after it.
    @Test("A connection is kept for as long as the configuration says")
    func idle() async throws {
        try await Self.withGateway(limits: "idleTimeout: 1s") { gateway in
            func ask(_ path: String, _ socket: RawClient) -> Int? {
                socket.send("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n")
                let bytes = socket.readUntil { !RawAnswer.all(in: $0).isEmpty }.bytes
                return RawAnswer.all(in: bytes).first?.status
            }
            let admin = UInt16(gateway.admin.split(separator: ":").last ?? "") ?? 0
            let kept = try RawClient(port: admin, nil)
            #expect(ask("/livez", kept) == 200)
            let short = try RawClient(port: gateway.port, .init("http/1.1")).handshake()
            #expect(ask("/.well-known/jwks.json", short) == 200)
            #expect(short.readUntil().isClosed)
            #expect(ask("/livez", kept) == 200)
        }
    }

    @Test(
        "A gateway without room for more connections says which limit it was",
        arguments: [
            ("connections: 20", "connections"),
            ("connections: 100, connectionsPerAddress: 20", "address"),
        ])
    func connections(limits: String, reason: String) async throws {
        try await Self.withGateway(limits: limits) { gateway in
            let crowd = try (0..<21).map { _ in try RawClient(port: gateway.port, nil) }
            try blockUntil("all are open that may be") {
                try gateway.metrics()["timeline_gateway_connections"] == 20
            }
            let line = "connections are closed or wait at a limit"
            try blockUntil("it is logged") {
                gateway.standardErrorTail.split(separator: "\n").contains {
                    $0.contains(line) && $0.contains("level=info")
                        && $0.contains("limit=\(reason)")
                }
            }
            let page = try gateway.metrics()
            let refused = "timeline_gateway_connections_refused_total{reason=\"\(reason)\"}"
            #expect(page[refused] ?? 0 > 0)
            let overview = try gateway.adminHTTP().request("GET", "/api/overview").text
            #expect(overview.contains("limits.connections allows") == (reason == "connections"))
            withExtendedLifetime(crowd) {}
        }
    }
}
