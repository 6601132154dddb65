import GatewayTestSupport
import Testing
import WidgetModel

/// Gateways that are full, or seem to be.
@Suite("Full gateways")
struct FullGatewayTests {
    private static let app = "com.mygame"

    private static func withGateway(
        limits: String, _ body: @escaping @Sendable (GatewayProcess, _ port: UInt16) throws -> Void
    ) async throws {
        try await elsewhere {
            let configuration = try GatewayConfiguration([
                "publicURL: https://gateway.test", "limits: { \(limits) }",
            ])
            let admin = try GatewayProcess.freePort()
            let gateway = try GatewayProcess(
                data: configuration.folder, configuration: configuration.file,
                admin: "127.0.0.1:\(admin)")
            try body(gateway, UInt16(gateway.url.split(separator: ":").last ?? "") ?? 0)
        }
    }

    /// 20 clients on slow links have begun posts of 40 KB, five times what the gateway may hold. It
    /// reserves only what has arrived, so a small post fits. When the rest arrives, the gateway
    /// accepts one post after the other.
    @Test("Bodies take room as they arrive, and those that wait for more all get it")
    func slowBodies() async throws {
        try await Self.withGateway(limits: "requestBytesInWork: 150000") { gateway, port in
            let backend = try gateway.token(
                app: Self.app, scope: "catalog:write changes:write clients:write")
            try gateway.http().putCatalog(Catalogs.game, app: Self.app, token: backend)
            let bodies = (0..<20).map { post -> [UInt8] in
                let events = (0..<250).map { Documents.event("\(post)-\($0)") }
                return Array(JSONValue.array(events).text.utf8)
            }
            let sockets = try bodies.map { body in
                let socket = try RawSocket(port: port, tls: .init())
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
        try await Self.withGateway(limits: "idleTimeout: 1s") { gateway, port in
            func ask(_ path: String, _ socket: RawSocket) -> Int? {
                socket.send("GET \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n")
                let bytes = socket.readUntil { !RawAnswer.all(in: $0).isEmpty }.bytes
                return RawAnswer.all(in: bytes).first?.status
            }
            let admin = UInt16(gateway.admin.split(separator: ":").last ?? "") ?? 0
            let kept = try RawSocket(port: admin, tls: nil)
            #expect(ask("/livez", kept) == 200)
            let short = try RawSocket(port: port, tls: .init())
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
        try await Self.withGateway(limits: limits) { gateway, port in
            let crowd = try (0..<21).map { _ in try RawSocket(port: port, tls: nil) }
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
