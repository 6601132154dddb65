import COpenSSL
import GatewayTestSupport
import Testing

/// Peers that never complete a request, or take for ever to do so.
@Suite("TLS and slow peers", .othersUnaffected)
struct TLSAttackTests {
    @Test(
        "TLS 1.0 and 1.1 are refused, 1.2 and 1.3 are not",
        arguments: [
            (TLS1_VERSION, false), (TLS1_1_VERSION, false), (TLS1_2_VERSION, true),
            (TLS1_3_VERSION, true),
        ])
    func versions(_ version: Int32, _ isAccepted: Bool) async throws {
        let port = try await Target.shared().port
        let isConnected = try await elsewhere {
            (try? RawSocket(port: port, tls: .init(versions: version...version))) != nil
        }
        #expect(isConnected == isAccepted)
    }

    @Test(
        "What is no ClientHello ends the connection without an answer in HTTP",
        arguments: [
            Array("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8),
            [0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3] + [UInt8](repeating: 0xAA, count: 508),
            [0x16, 3, 1, 0xFF, 0xFF] + [UInt8](repeating: 1, count: 0xFFFF),
            [UInt8](repeating: 0, count: 4096), [UInt8](repeating: 0xFF, count: 100_000),
            [0x15, 3, 3, 0, 2, 2, 40], [0x17, 3, 3, 0, 1, 0], [0x14, 3, 3, 0, 1, 1],
            Array("PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n".utf8),
        ] as [[UInt8]])
    func garbageHello(_ bytes: [UInt8]) async throws {
        let port = try await Target.shared().port
        let (answer, isClosed) = try await elsewhere {
            let socket = try RawSocket(port: port, tls: nil)
            socket.send(bytes)
            return socket.readUntil(seconds: 30)
        }
        #expect(isClosed)
        #expect(answer.count <= 7, "an alert at most")
        #expect(!String(decoding: answer, as: UTF8.self).contains("HTTP"))
    }

    /// Connects, sends `start`, then `drop` again and again; returns whether the gateway ends that.
    ///
    /// A request of HTTP/2 is also ended by an answer or a reset.
    private func isEnded(
        tls: RawSocket.TLS?, _ start: [UInt8], drop: [UInt8], rounds: Int = 60
    ) async throws -> Bool {
        let port = try await Target.shared().port
        let endings = [HTTP2Frames.Kind.reset, .headers, .goAway].map(\.rawValue)
        return try await elsewhere {
            let socket = try RawSocket(port: port, tls: tls)
            socket.send(start)
            for _ in 0..<rounds {
                if !drop.isEmpty, !socket.send(drop) { return true }
                let (bytes, isClosed) = socket.readUntil(seconds: 1)
                if isClosed { return true }
                guard tls?.alpn == "h2" else { continue }
                if HTTP2Frames.all(in: bytes).contains(where: { endings.contains($0.kind) }) {
                    return true
                }
            }
            return false
        }
    }

    @Test("A stalled handshake is ended at its deadline")
    func stalledHandshake() async throws {
        #expect(try await isEnded(tls: nil, [], drop: []))
        #expect(try await Target.shared().bystander.trouble() == nil)
    }

    @Test("A handshake that drips is ended at its deadline")
    func drippingHandshake() async throws {
        #expect(try await isEnded(tls: nil, [0x16, 3, 1, 2, 0], drop: [1]))
    }

    @Test("A head that drips is ended")
    func drippingHead() async throws {
        let start = Array("GET / HTTP/1.1\r\nHost: x\r\nX-A: ".utf8)
        #expect(try await isEnded(tls: .init(), start, drop: Array("a".utf8)))
    }

    @Test("A connection that asks for nothing is ended", arguments: ["http/1.1", "h2"])
    func silence(_ alpn: String) async throws {
        #expect(try await isEnded(tls: .init(alpn: alpn), [], drop: []))
    }

    @Test("An HTTP/2 connection that only pings is ended")
    func pings() async throws {
        let ping = HTTP2Frames.frame(.ping, [1, 2, 3, 4, 5, 6, 7, 8])
        let start = HTTP2Frames.preface + HTTP2Frames.frame(.settings)
        #expect(try await isEnded(tls: .init(alpn: "h2"), start, drop: ping))
    }

    @Test("A body that drips is ended", arguments: [true, false])
    func drippingBody(_ isHTTP2: Bool) async throws {
        let target = try await Target.shared()
        let path = "/v1/apps/\(Target.app)/changes"
        if isHTTP2 {
            let fields =
                HTTP2Frames.request("POST", path) + [
                    ("authorization", "Bearer \(target.backend)"),
                    ("content-type", "application/cloudevents+json"),
                ]
            let start =
                HTTP2Frames.preface + HTTP2Frames.frame(.settings)
                + HTTP2Frames.frame(
                    .headers, flags: HTTP2Frames.endHeaders, stream: 1, HTTP2Frames.block(fields))
            let drop = HTTP2Frames.frame(.data, stream: 1, [0x20])
            #expect(try await isEnded(tls: .init(alpn: "h2"), start, drop: drop))
        } else {
            let start = """
                POST \(path) HTTP/1.1\r
                Host: localhost\r
                Authorization: Bearer \(target.backend)\r
                Content-Type: application/cloudevents+json\r
                Content-Length: 60000\r
                \r

                """
            #expect(try await isEnded(tls: .init(), Array(start.utf8), drop: [0x20]))
        }
    }

    @Test("Key updates alone end a connection, and the log says so", arguments: [true, false])
    func keyUpdates(afterRequest: Bool) async throws {
        let target = try await Target.shared()
        let port = target.port
        func lines() -> [Substring] {
            target.log().split(separator: "\n").filter {
                $0.contains("a connection was closed because of what its peer sent")
                    && $0.contains("violation=empty_records")
            }
        }
        let before = lines().count
        let isEnded = try await elsewhere {
            let socket = try RawSocket(
                port: port, tls: .init(versions: TLS1_3_VERSION...TLS1_3_VERSION))
            if afterRequest {
                socket.send("GET /.well-known/jwks.json HTTP/1.1\r\nHost: x\r\n\r\n")
                _ = socket.readUntil { !RawAnswer.all(in: $0).isEmpty }
            }
            for _ in 0..<1_000 where !socket.updateKeys() { break }
            return socket.readUntil(seconds: 60).isClosed
        }
        #expect(isEnded)
        // The line may be written after the alert is sent.
        for _ in 0..<12_000 where lines().count == before {
            try await Task.sleep(for: .milliseconds(10))
        }
        #expect(lines().count == before + 1)
        #expect(try await target.bystander.trouble() == nil)
    }

    @Test("Two hundred stalled handshakes leave room for everybody else")
    func manyStalledHandshakes() async throws {
        let target = try await Target.shared()
        let port = target.port
        let trouble = try await elsewhere {
            (0..<200).compactMap { _ in try? RawSocket(port: port, tls: nil) }.count
        }
        #expect(trouble == 200)
        #expect(try await target.bystander.trouble() == nil)
        let answer = try await target.send("GET", "/.well-known/jwks.json", token: nil)
        #expect(answer.status == 200)
    }
}
