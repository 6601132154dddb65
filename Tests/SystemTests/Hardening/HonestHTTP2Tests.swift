import GatewayTestSupport
import Testing
import WidgetModel

/// What honest clients and proxies do with a connection of HTTP/2, and attackers do much more.
@Suite("Honest HTTP/2", .othersUnaffected)
struct HonestHTTP2Tests {
    typealias Frames = HTTP2Frames
    typealias Outcome = HTTP2AttackTests.Outcome

    /// A connection, and everything that was read from it.
    private final class Connection {
        private let socket: RawClient
        private var received: [UInt8] = []
        /// The number of bytes of DATA sent, by stream.
        private var sent: [UInt32: Int] = [:]

        init(port: UInt16, settings: [UInt8] = []) throws {
            socket = try RawClient(port: port, .init("h2")).handshake()
            socket.send(Frames.preface + Frames.frame(.settings, settings))
        }

        func send(_ frames: [UInt8]) throws {
            guard socket.send(frames) else { throw TestFailure("the connection was ended") }
        }

        /// Reads until `isEnough`; returns everything so far.
        @discardableResult
        func read(until isEnough: (Outcome) -> Bool) throws -> Outcome {
            try wait { isEnough(HTTP2AttackTests.outcome($0, isClosed: false)) }
            return HTTP2AttackTests.outcome(received, isClosed: false)
        }

        private func wait(until isEnough: ([UInt8]) -> Bool) throws {
            let (bytes, _) = socket.readUntil { isEnough(received + $0) }
            received += bytes
            guard isEnough(received) else {
                throw TestFailure("\(HTTP2AttackTests.outcome(received, isClosed: false))")
            }
        }

        /// Sends a PING and waits for its answer: what came before it was received.
        func ping(_ number: UInt8) throws {
            let payload = [UInt8](repeating: number, count: 8)
            try send(Frames.frame(.ping, payload))
            try wait { bytes in
                Frames.all(in: bytes).contains {
                    $0.kind == Frames.Kind.ping.rawValue && $0.flags == 1 && $0.payload == payload
                }
            }
        }

        /// The number of bytes that may be sent in a stream.
        private func window(of stream: UInt32, _ bytes: [UInt8]) -> Int {
            var (own, shared) = (65_535, 65_535)
            for frame in Frames.all(in: bytes) where frame.payload.count >= 4 {
                let value = Int(frame.payload.suffix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
                switch Frames.Kind(rawValue: frame.kind) {
                // The window is the last of the settings, if they contain one.
                case .settings where frame.payload[frame.payload.count - 5] == 4: own = value
                case .windowUpdate where frame.stream == stream: own += value
                case .windowUpdate where frame.stream == 0: shared += value
                default: break
                }
            }
            return min(own - sent[stream, default: 0], shared - sent.values.reduce(0, +))
        }

        func waitForWindow(of stream: UInt32, above count: Int = 0) throws {
            try wait { window(of: stream, $0) > count }
        }

        /// Sends as much of `count` bytes as the windows allow; returns how much that was.
        func sendData(_ count: Int, _ stream: UInt32) throws -> Int {
            let allowed = max(0, min(count, window(of: stream, received)))
            var (frames, left) = ([UInt8](), allowed)
            while left > 0 {
                let piece = min(left, 16_384)
                left -= piece
                let flags = left == 0 && allowed == count ? Frames.endStream : 0
                frames += Frames.frame(
                    .data, flags: flags, stream: stream, [UInt8](repeating: 32, count: piece))
            }
            sent[stream, default: 0] += allowed
            try send(frames)
            return allowed
        }
    }

    private static func post(
        _ stream: UInt32, length: Int, token: String, _ more: [(String, String)] = []
    ) -> [UInt8] {
        let fields =
            [
                ("authorization", "Bearer \(token)"), ("content-length", "\(length)"),
                ("content-type", "application/cloudevents-batch+json"),
            ] + more
        return Frames.frame(
            .headers, flags: Frames.endHeaders, stream: stream,
            Frames.block(Frames.request("POST", "/v1/apps/\(Target.app)/changes") + fields))
    }

    private static func head(_ stream: UInt32) -> [UInt8] {
        Frames.frame(
            .headers, flags: Frames.endStream | Frames.endHeaders, stream: stream,
            Frames.block(Frames.request("HEAD", "/.well-known/jwks.json")))
    }

    /// At a round-trip time of 300 ms, 24 of them take 7 s.
    @Test("An upload of 7 MiB takes few round trips")
    func upload() async throws {
        let target = try await Target.shared()
        let (trips, status) = try await elsewhere { () -> (Int, Int?) in
            let connection = try Connection(port: target.port)
            var (left, trips) = (7 << 20, 0)
            try connection.send(Self.post(1, length: left, token: target.backend))
            while true {
                left -= try connection.sendData(left, 1)
                guard left > 0 else { break }
                trips += 1
                try connection.waitForWindow(of: 1)
            }
            return (trips, try connection.read { $0.statuses[1] != nil }.statuses[1])
        }
        #expect(status == 400, "they are blanks")
        #expect(trips <= 24)
    }

    /// Otherwise everybody could have it keep as much as the windows allow.
    @Test("A body that waits for memory may not be sent")
    func waitingBody() async throws {
        let gateway = try GatewayConfiguration([
            "publicURL: https://gateway.test", "limits: { requestBytesInWork: 65536 }",
        ]).start(asProcess: true)
        let token = try gateway.token(app: Target.app, scope: "changes:write catalog:write")
        try gateway.http().putCatalog(Catalogs.game, app: Target.app, token: token)
        let port = gateway.port
        let sent = try await elsewhere { () -> Int in
            let connection = try Connection(port: port)
            let length = 4 << 20
            try connection.send(Self.post(1, length: length, token: token))
            // The first one has the memory, which its window shows.
            var (sent, idle) = (0, 0)
            for _ in 0..<2 {
                sent += try connection.sendData(length - sent, 1)
                try connection.waitForWindow(of: 1)
            }
            try connection.waitForWindow(of: 1, above: 65_535)
            try connection.send(Self.post(3, length: length, token: token))
            sent = 0
            for number in 0..<200 where idle < 10 {
                let more = try connection.sendData(length - sent, 3)
                sent += more
                idle = more > 0 ? 0 : idle + 1
                try connection.ping(UInt8(number))
            }
            return sent
        }
        #expect(sent >= 65_535 && sent < 4 * 65_535, "\(sent)")
    }

    /// Their upload is under way when they are answered.
    @Test("Sixty early answers end their streams and not the connection")
    func earlyAnswers() async throws {
        let target = try await Target.shared()
        let streams = (0..<60).map { UInt32(2 * $0 + 1) }
        let outcome = try await elsewhere { () -> Outcome in
            let connection = try Connection(port: target.port)
            for stream in streams {
                let gzip = [("content-encoding", "gzip")]
                try connection.send(
                    Self.post(stream, length: 1 << 20, token: target.backend, gzip)
                        + Frames.frame(.data, stream: stream, [32]))
            }
            try connection.read { $0.resets.isSuperset(of: streams) }
            for stream in streams {
                try connection.send(
                    Frames.frame(.data, stream: stream, [32])
                        + Frames.frame(.reset, stream: stream, Frames.number(8)))
            }
            try connection.send(Self.head(121))
            return try connection.read { $0.statuses[121] != nil }
        }
        // The others refer to the first.
        #expect(outcome.statuses.values.contains(415), "\(outcome)")
        #expect(outcome.ended.isSuperset(of: streams))
        #expect(outcome.statuses[121] == 200 && outcome.goAways.isEmpty)
    }

    /// As behind a proxy whose clients come and go.
    @Test("Clients that leave end nobody else's stream")
    func leavingClients() async throws {
        let port = try await Target.shared().port
        let outcome = try await elsewhere { () -> Outcome in
            // SETTINGS_INITIAL_WINDOW_SIZE of 0: no answer can end.
            let connection = try Connection(port: port, settings: [0, 4, 0, 0, 0, 0])
            try connection.send(HTTP2AttackTests.get(1))
            for round in 0..<8 {
                let streams = (0..<90).map { UInt32(3 + 2 * (90 * round + $0)) }
                try connection.send(streams.flatMap { HTTP2AttackTests.get($0) })
                try connection.read { $0.statuses.count == 1 + 90 * (round + 1) }
                try connection.send(
                    streams.flatMap { Frames.frame(.reset, stream: $0, Frames.number(8)) })
            }
            try connection.send(Frames.frame(.settings, [0, 4, 0, 1, 0, 0]))
            return try connection.read { $0.ended.contains(1) }
        }
        #expect(outcome.goAways.isEmpty && outcome.resets.isEmpty)
    }

    @Test("PING, and pieces of bodies that are empty, may be frequent")
    func frequentFrames() async throws {
        let target = try await Target.shared()
        let outcome = try await elsewhere { () -> Outcome in
            let connection = try Connection(port: target.port)
            for number in 0..<250 { try connection.ping(UInt8(number)) }
            try connection.send(Self.post(1, length: 100, token: target.backend))
            for number in 0..<100 {
                try connection.send(
                    Frames.frame(.data, stream: 1)
                        + Frames.frame(
                            .data, flags: number == 99 ? Frames.endStream : 0, stream: 1, [32]))
            }
            return try connection.read { $0.statuses[1] != nil }
        }
        #expect(outcome.statuses[1] == 400 && outcome.goAways.isEmpty, "they are blanks")
    }
}
