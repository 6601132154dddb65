import Foundation
import GatewayTestSupport
import Testing
import WidgetModel

/// Crowds that send nothing, and peers that read nothing.
@Suite("Crowd attacks", .serialized)
struct CrowdAttackTests {
    private static let app = "com.mygame"

    private static func port(_ process: GatewayProcess) -> UInt16 {
        UInt16(process.url.split(separator: ":").last ?? "") ?? 0
    }

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
        raiseOwnLimit()
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
            var poster = try RawSocket(port: Self.port(process), tls: .init())
            var statuses: [Int] = []
            var most = 0
            var crowd: [RawSocket] = []
            for number in 0..<400 {
                if number >= 20, crowd.count < 600 {
                    for _ in 0..<20 {
                        crowd.append(try RawSocket(port: Self.port(process), tls: nil))
                    }
                }
                var status = Self.post(number, poster, backend)
                if status == 0 {
                    // Its connection was idle for too long, as after a stall of this machine: any
                    // client opens another one.
                    poster = try RawSocket(port: Self.port(process), tls: .init())
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

    private static func post(_ number: Int, _ socket: RawSocket, _ backend: String) -> Int {
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

    private func raiseOwnLimit() {
        var limits = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(resource, &limits) == 0 else { return }
        limits.rlim_cur = limits.rlim_max
        setrlimit(resource, &limits)
    }

    /// Incomplete request heads on the plain port: other requests are answered, and the incomplete
    /// ones are closed.
    @Test("Half heads on the plain port are in nobody's way") func plainPort() async throws {
        raiseOwnLimit()
        let admin = try GatewayProcess.freePort()
        let process = try GatewayProcess(
            admin: "127.0.0.1:\(admin)", wrapper: ["prlimit", "--nofile=400:400"])
        try await elsewhere {
            var crowd: [RawSocket] = []
            for number in 0..<600 {
                let socket = try RawSocket(port: admin, tls: nil)
                socket.send("GET /livez HTTP/1.1\r\nHost: x\r\nX-Half: ")
                crowd.append(socket)
                guard number % 100 == 99 else { continue }
                let probe = try RawSocket(port: admin, tls: nil)
                probe.send("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
                let bytes = probe.readUntil { !RawAnswer.all(in: $0).isEmpty }.bytes
                #expect(RawAnswer.all(in: bytes).first?.status == 200)
                // The TLS port still has descriptors.
                _ = try RawSocket(port: Self.port(process), tls: .init())
            }
            #expect(Self.openFiles(process.pid) < 200)
            // The last ones are closed at their deadline.
            #expect(crowd.last?.readUntil().isClosed == true)
        }
    }
}
