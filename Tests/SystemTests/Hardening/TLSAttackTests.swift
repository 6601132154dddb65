import COpenSSL
import GatewayTestSupport
import Testing

/// Peers that never complete a request, or take for ever to do so.
@Suite("TLS and slow peers", .othersUnaffected)
struct TLSAttackTests {
    /// A peer that completes nothing, or takes for ever to do so.
    private struct SlowPeer: Sendable {
        let name: String
        /// `nil` for a connection without a handshake.
        var alpn: String? = "http/1.1"
        /// Sent at first.
        var start: [UInt8] = []
        /// Sent again and again, with a second between.
        var drop: [UInt8] = []
        /// The frames of HTTP/2 that end its request, as the end of the connection does.
        var endings: [HTTP2Frames.Kind] = []

        /// Connects; returns whether the gateway ends it.
        func isEnded(port: UInt16) throws -> Bool {
            let socket = try RawClient(port: port, alpn.map { RawClient.Options($0) }).handshake()
            if !socket.send(start) { return true }
            var received: [UInt8] = []
            for _ in 0..<Int(Patience.seconds) {
                if !drop.isEmpty, !socket.send(drop) { return true }
                let (bytes, isClosed) = socket.readUntil(seconds: 1)
                received += bytes
                let kinds = endings.isEmpty ? [] : HTTP2Frames.all(in: received).map(\.kind)
                if isClosed || endings.contains(where: { kinds.contains($0.rawValue) }) {
                    return true
                }
            }
            return false
        }
    }

    private static func slowPeers(_ target: Target) -> [SlowPeer] {
        typealias Frames = HTTP2Frames
        let begin = Frames.preface + Frames.frame(.settings)
        let path = "/v1/apps/\(Target.app)/changes"
        let change = Frames.block(
            Frames.request("POST", path) + [
                ("authorization", "Bearer \(target.backend)"),
                ("content-type", "application/cloudevents+json"),
            ])
        func post(_ length: Int) -> [UInt8] {
            Array(
                """
                POST \(path) HTTP/1.1\r
                Host: localhost\r
                Authorization: Bearer \(target.backend)\r
                Content-Type: application/cloudevents+json\r
                Content-Length: \(length)\r
                \r

                """.utf8)
        }
        let document = Frames.block(Frames.request("GET", "/openapi.json"))
        let requests = (UInt32(0)..<100).flatMap { number in
            Frames.frame(
                .headers, flags: Frames.endStream | Frames.endHeaders, stream: number * 2 + 1,
                document)
        }
        return [
            SlowPeer(name: "a stalled handshake", alpn: nil),
            SlowPeer(
                name: "a handshake that drips", alpn: nil, start: [0x16, 3, 1, 2, 0], drop: [1]),
            SlowPeer(
                name: "a head that drips", start: Array("GET / HTTP/1.1\r\nHost: x\r\nX-A: ".utf8),
                drop: Array("a".utf8)),
            SlowPeer(name: "no request"),
            SlowPeer(name: "no request of HTTP/2", alpn: "h2"),
            SlowPeer(
                name: "pings alone", alpn: "h2", start: begin,
                drop: Frames.frame(.ping, [1, 2, 3, 4, 5, 6, 7, 8]),
                endings: [.reset, .headers, .goAway]),
            SlowPeer(name: "a body that drips", start: post(60_000), drop: [0x20]),
            SlowPeer(
                name: "a body of HTTP/2 that drips", alpn: "h2",
                start: begin
                    + Frames.frame(.headers, flags: Frames.endHeaders, stream: 1, change),
                drop: Frames.frame(.data, stream: 1, [0x20]),
                endings: [.reset, .headers, .goAway]),
            SlowPeer(
                name: "an endless body after its 413", start: post(1_000_000_000_000),
                drop: [UInt8](repeating: 120, count: 65_536)),
            // SETTINGS_INITIAL_WINDOW_SIZE of 0: not one byte of DATA may be sent.
            SlowPeer(
                name: "answers that nobody reads", alpn: "h2",
                start: Frames.preface + Frames.frame(.settings, [0, 4, 0, 0, 0, 0]) + requests,
                endings: [.reset]),
        ]
    }

    /// All at once, because each waits for a deadline of the gateway.
    @Test("Peers that stall or drip are ended at their deadlines") func slowPeers() async throws {
        let target = try await Target.shared()
        let left = try await withThrowingTaskGroup(of: String?.self) { group in
            for peer in Self.slowPeers(target) {
                group.addTask {
                    try await elsewhere { try peer.isEnded(port: target.port) } ? nil : peer.name
                }
            }
            return try await group.reduce(into: [String]()) { left, name in
                if let name { left.append(name) }
            }
        }
        #expect(left == [])
    }

    @Test("Key updates alone end a connection, and the log says so", arguments: [true, false])
    func keyUpdates(afterRequest: Bool) async throws {
        let target = try await Target.shared()
        func lines() -> [Substring] {
            target.log().split(separator: "\n").filter {
                $0.contains("a connection or a request was ended because of its peer")
                    && $0.contains("violation=empty_records")
            }
        }
        let before = lines().count
        let isEnded = try await elsewhere {
            let socket = try RawClient(
                port: target.port, .init("http/1.1", version: TLS1_3_VERSION)
            ).handshake()
            if afterRequest {
                socket.send("GET /.well-known/jwks.json HTTP/1.1\r\nHost: x\r\n\r\n")
                _ = socket.readUntil { !RawAnswer.all(in: $0).isEmpty }
            }
            for _ in 0..<1_000 where !socket.updateKeys() { break }
            return socket.readUntil().isClosed
        }
        #expect(isEnded)
        // The line may be written after the alert is sent.
        try await eventually("a line is written") { lines().count == before + 1 }
        #expect(try await target.bystander.trouble() == nil)
    }

    @Test("Two hundred stalled handshakes leave room for everybody else")
    func manyStalledHandshakes() async throws {
        let target = try await Target.shared()
        let trouble = try await elsewhere {
            (0..<200).compactMap { _ in try? RawClient(port: target.port, nil) }.count
        }
        #expect(trouble == 200)
        #expect(try await target.bystander.trouble() == nil)
        let answer = try await target.send("GET", "/.well-known/jwks.json", token: nil)
        #expect(answer.status == 200)
    }
}
