import GatewayTestSupport
import Testing
import WidgetModel

/// Frames that are cheap for the sender and expensive for a server.
@Suite("HTTP/2 attacks", .othersUnaffected)
struct HTTP2AttackTests {
    typealias Frames = HTTP2Frames
    static let keys = Frames.request("GET", "/.well-known/jwks.json")

    struct Outcome: Sendable {
        var statuses: [UInt32: Int] = [:]
        var resets: Set<UInt32> = []
        var goAways: [UInt8] = []
        /// The last streams that the GOAWAYs name.
        var lastStreams: [UInt32] = []
        /// The numbers of bytes of bodies by stream.
        var bytes: [UInt32: Int] = [:]
        /// The streams that ended properly.
        var ended: Set<UInt32> = []
        var isClosed = false
    }

    static func outcome(_ bytes: [UInt8], isClosed: Bool) -> Outcome {
        var outcome = Outcome(isClosed: isClosed)
        for frame in Frames.all(in: bytes) {
            switch Frames.Kind(rawValue: frame.kind) {
            case .headers: outcome.statuses[frame.stream] = Frames.status(frame.payload)
            case .reset: outcome.resets.insert(frame.stream)
            case .goAway:
                outcome.goAways.append(frame.payload.count > 7 ? frame.payload[7] : 0)
                outcome.lastStreams.append(
                    frame.payload.prefix(4).reduce(0) { $0 << 8 | UInt32($1) })
            case .data: outcome.bytes[frame.stream, default: 0] += frame.payload.count
            default: break
            }
            if [Frames.Kind.headers.rawValue, Frames.Kind.data.rawValue].contains(frame.kind),
                frame.flags & Frames.endStream != 0
            {
                outcome.ended.insert(frame.stream)
            }
        }
        return outcome
    }

    /// Sends the preface and frames, and reads until `isEnough` or the connection's end.
    private func attack(
        _ frames: [UInt8], until isEnough: @escaping @Sendable (Outcome) -> Bool = { _ in false }
    ) async throws -> Outcome {
        let port = try await Target.shared().port
        return try await elsewhere {
            let socket = try RawClient(port: port, .init("h2")).handshake()
            socket.send(Frames.preface + Frames.frame(.settings))
            var sent = 0
            while sent < frames.count {
                let end = min(sent + 65_536, frames.count)
                guard socket.send(Array(frames[sent..<end])) else { break }
                sent = end
            }
            let (bytes, isClosed) = socket.readUntil {
                isEnough(Self.outcome($0, isClosed: false))
            }
            return Self.outcome(bytes, isClosed: isClosed)
        }
    }

    /// Expects the gateway to state the error and end the connection.
    @discardableResult
    private func expectEnd(
        _ frames: [UInt8], _ sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Outcome {
        let outcome = try await attack(frames)
        #expect(!outcome.goAways.isEmpty, "it says GOAWAY", sourceLocation: sourceLocation)
        #expect(outcome.isClosed, "and closes", sourceLocation: sourceLocation)
        return outcome
    }

    static func get(_ stream: UInt32, _ more: [(String, String)] = []) -> [UInt8] {
        Frames.frame(
            .headers, flags: Frames.endStream | Frames.endHeaders, stream: stream,
            Frames.block(keys + more))
    }

    @Test("What the tests start from is answered")
    func control() async throws {
        let outcome = try await attack(Self.get(1)) { $0.statuses[1] != nil }
        #expect(outcome.statuses[1] == 200)
    }

    @Test("HEAD is answered without a body, and its stream ends")
    func head() async throws {
        let block = Frames.block(Frames.request("HEAD", "/.well-known/jwks.json"))
        let outcome = try await attack(
            Frames.frame(.headers, flags: 5, stream: 1, block) + Self.get(3)
        ) { $0.ended.isSuperset(of: [1, 3]) }
        #expect(outcome.statuses == [1: 200, 3: 200])
        #expect(outcome.ended == [1, 3] && outcome.resets.isEmpty && outcome.goAways.isEmpty)
        #expect(outcome.bytes[1, default: 0] == 0 && outcome.bytes[3, default: 0] > 0)
    }

    @Test("Rapid reset ends the connection")
    func rapidReset() async throws {
        let frames = (0..<5_000).flatMap { number -> [UInt8] in
            let stream = UInt32(number * 2 + 1)
            return Self.get(stream) + Frames.frame(.reset, stream: stream, Frames.number(8))
        }
        let outcome = try await expectEnd(frames)
        // More than a thousand were processed, and not all.
        let last = outcome.lastStreams.last ?? 0
        #expect((2_001..<9_999).contains(last) && last % 2 == 1, "\(outcome.lastStreams)")
    }

    @Test(
        "A flood of control frames ends the connection",
        arguments: [
            "settings", "ping", "priority",
        ])
    func controlFlood(_ kind: String) async throws {
        let frame =
            switch kind {
            case "settings": Frames.frame(.settings, [0, 3, 0, 0, 0, 100])
            case "ping": Frames.frame(.ping, [1, 2, 3, 4, 5, 6, 7, 8])
            default: Frames.frame(.priority, stream: 1, [0, 0, 0, 3, 16])
            }
        try await expectEnd(Array([[UInt8]](repeating: frame, count: 50_000).joined()))
    }

    @Test("A flood of CONTINUATION frames ends the connection", arguments: [true, false])
    func continuationFlood(_ isEmpty: Bool) async throws {
        let block = isEmpty ? [] : Frames.block([("x", String(repeating: "s3cr3t", count: 150))])
        let continuation = Frames.frame(.continuation, stream: 1, block)
        let start = Frames.frame(
            .headers, flags: Frames.endStream, stream: 1, Frames.block(Self.keys))
        let flood = [[UInt8]](repeating: continuation, count: isEmpty ? 50_000 : 2_000)
        try await expectEnd(start + Array(flood.joined()))
    }

    @Test("A flood of empty DATA frames ends the connection")
    func emptyDataFlood() async throws {
        let backend = try await Target.shared().backend
        let start = Frames.frame(
            .headers, flags: Frames.endHeaders, stream: 1,
            Frames.block(
                Frames.request("POST", "/v1/apps/\(Target.app)/changes") + [
                    ("authorization", "Bearer \(backend)"),
                    ("content-type", "application/cloudevents+json"),
                ]))
        let data = Frames.frame(.data, stream: 1)
        try await expectEnd(start + Array([[UInt8]](repeating: data, count: 50_000).joined()))
    }

    @Test(
        "Frames that no peer may send end the connection",
        arguments: [
            Frames.frame(.windowUpdate, Frames.number(0)),
            Frames.frame(.windowUpdate, Frames.number(0x7FFF_FFFF)),
            Frames.frame(.data, stream: 0, [1]), Frames.frame(.data, flags: 1, stream: 5, [1]),
            Frames.frame(.data, stream: 1, [UInt8](repeating: 0, count: 20_000)),
            Frames.frame(.headers, flags: 5, stream: 1, [255, 255, 255, 255, 255]),
            Frames.frame(.headers, flags: 5, stream: 2, Frames.block(keys)),
            Frames.frame(.settings, [0, 4, 255, 255, 255, 255]),
            Frames.frame(.ping, stream: 1, [1, 2, 3, 4, 5, 6, 7, 8]),
            Frames.frame(.push, flags: 4, stream: 1, [0, 0, 0, 2]),
            Array("GET / HTTP/1.1\r\nHost: x\r\n\r\n".utf8),
        ])
    func wrongFrames(_ frames: [UInt8]) async throws {
        try await expectEnd(frames)
    }

    @Test("A field block that expands out of all proportion ends the connection")
    func compressionBomb() async throws {
        let value = String(repeating: "y", count: 3_900)
        let insertion = [0x40] + Frames.block([("x", value)]).dropFirst()
        let bomb = insertion + [UInt8](repeating: 0xBE, count: 8_000) + Frames.block(Self.keys)
        let outcome = try await attack(
            Frames.frame(.headers, flags: 5, stream: 1, bomb)
        ) { $0.statuses[1] == 431 || $0.resets.contains(1) }
        let isRefused =
            outcome.statuses[1] == 431 || outcome.resets.contains(1)
            || (!outcome.goAways.isEmpty && outcome.isClosed)
        #expect(isRefused)
    }

    @Test(
        "Requests that are none are reset or 400, the connection goes on",
        arguments: [
            [("x-a", "a\r\nb: c")], [("x-a", "a\u{0}b")], [("X-Upper", "1")],
            [("connection", "close")], [("transfer-encoding", "chunked")], [(":path", "/twice")],
            [("te", "gzip")], [("x y", "1")], [(":unknown", "1")],
        ])
    func wrongFields(_ fields: [(String, String)]) async throws {
        let outcome = try await attack(Self.get(1, fields) + Self.get(3)) {
            $0.statuses[3] != nil
        }
        #expect(outcome.statuses[3] == 200, "the next request is answered")
        #expect(outcome.resets.contains(1) || outcome.statuses[1] == 400)
    }

    @Test(
        "More than a hundred fields, or 16 KiB of them, are refused, the connection goes on",
        arguments: [
            (150, 1), (20, 1_000), (60, 1_000),
        ])
    func manyFields(_ count: Int, _ size: Int) async throws {
        let value = String(repeating: "y", count: size)
        let fields = (0..<count).map { ("x-\($0)", value) }
        var block = Frames.block(Self.keys + fields)
        var frames: [UInt8] = []
        var isFirst = true
        repeat {
            let piece = Array(block.prefix(16_000))
            block.removeFirst(piece.count)
            let flags = (isFirst ? Frames.endStream : 0) | (block.isEmpty ? Frames.endHeaders : 0)
            frames += Frames.frame(
                isFirst ? .headers : .continuation, flags: flags, stream: 1, piece)
            isFirst = false
        } while !block.isEmpty
        let acknowledged = Frames.frame(.settings, flags: 1, stream: 0, [])
        let outcome = try await attack(acknowledged + frames + Self.get(3)) {
            $0.statuses[3] != nil
        }
        #expect(outcome.statuses[1] == 431 && outcome.statuses[3] == 200, "\(outcome)")
        #expect(outcome.goAways.isEmpty)
    }

    /// They are sent before the client can know the limit.
    @Test("A hundred requests at once are answered, more are refused", arguments: [100, 101, 150])
    func concurrentRequests(_ count: Int) async throws {
        // SETTINGS_INITIAL_WINDOW_SIZE of 0: no answer can end.
        let noWindow = Frames.frame(.settings, [0, 4, 0, 0, 0, 0])
        let requests = (0..<UInt32(count)).flatMap { Self.get(2 * $0 + 1) }
        let outcome = try await attack(noWindow + requests) {
            $0.resets.count == count - 100 && $0.statuses.count == 100
        }
        #expect(outcome.statuses.count == 100 && outcome.statuses.values.allSatisfy { $0 == 200 })
        #expect(outcome.resets == Set((100..<count).map { UInt32(2 * $0 + 1) }))
        #expect(outcome.goAways.isEmpty)
    }

    @Test("A path with bytes that are no UTF-8 is 400 or reset")
    func brokenPath() async throws {
        let backend = try await Target.shared().backend
        let path = Array("/v1/apps/\(Target.app)/clients/a".utf8) + [0xFF]
        let block = Frames.block([
            (":method", Array("GET".utf8)), (":scheme", Array("https".utf8)), (":path", path),
            (":authority", Array("x".utf8)), ("authorization", Array("Bearer \(backend)".utf8)),
        ])
        let outcome = try await attack(Frames.frame(.headers, flags: 5, stream: 1, block)) {
            $0.statuses[1] != nil || $0.resets.contains(1)
        }
        #expect(outcome.statuses[1] == 400 || outcome.resets.contains(1))
    }

    @Test("A reader that ends its side is noticed", arguments: [true, false])
    func halfClosed(_ closeNotify: Bool) async throws {
        let target = try await Target.shared()
        let client = "half-closed-\(closeNotify)"
        try await target.register(client)
        let token = try target.clientToken(client)
        let (status, isClosed) = try await elsewhere { () -> (Int?, Bool) in
            let block = Frames.block(
                Frames.request("GET", "/v1/apps/\(Target.app)/clients/\(client)/reloads") + [
                    ("authorization", "Bearer \(token)"), ("accept", "text/event-stream"),
                ])
            let socket = try RawClient(port: target.port, .init("h2")).handshake()
            socket.send(Frames.preface + Frames.frame(.settings))
            socket.send(Frames.frame(.headers, flags: 5, stream: 1, block))
            let answer = socket.readUntil { !Self.outcome($0, isClosed: false).statuses.isEmpty }
            if closeNotify { socket.sayGoodbye() }
            socket.shutdownSending()
            return (
                Self.outcome(answer.bytes, isClosed: false).statuses[1],
                socket.readUntil().isClosed
            )
        }
        #expect(status == 200 && isClosed)
    }

    @Test("A reader without window holds its stream back and nobody else")
    func zeroWindow() async throws {
        let target = try await Target.shared()
        try await target.register("window")
        let token = try target.clientToken("window")
        let trouble = try await elsewhere { () -> Bool in
            let socket = try RawClient(port: target.port, .init("h2")).handshake()
            // SETTINGS_INITIAL_WINDOW_SIZE of 0: not one byte of DATA may be sent.
            socket.send(Frames.preface + Frames.frame(.settings, [0, 4, 0, 0, 0, 0]))
            let block = Frames.block(
                Frames.request("GET", "/v1/apps/\(Target.app)/clients/window/reloads") + [
                    ("authorization", "Bearer \(token)"), ("accept", "text/event-stream"),
                ])
            socket.send(Frames.frame(.headers, flags: 5, stream: 1, block))
            let head = socket.readUntil { !Self.outcome($0, isClosed: false).statuses.isEmpty }
            let frames = Frames.all(in: head.bytes)
            return frames.contains { $0.kind == Frames.Kind.data.rawValue && !$0.payload.isEmpty }
        }
        #expect(!trouble, "no DATA without window")
        #expect(try await target.bystander.trouble() == nil)
    }
}
