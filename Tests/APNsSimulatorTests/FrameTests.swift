import GatewayTLS
import NIOCore
import NIOEmbedded
import NIOHPACK
import NIOHTTP2
import Synchronization
import Testing

@testable import APNsSimulator

/// The exact frames that a connection sends, as a client's HTTP/2 implementation parses them.
@Suite struct FrameTests {
    /// A client and a server, without TLS and sockets between them.
    private final class Wire {
        let authorization: String
        let service: APNsService
        let number: Int
        private let server = EmbeddedChannel()
        private let client = EmbeddedChannel()
        private var stream = -1

        init(_ change: (inout SimulatedAPNs.Terms) -> Void = { _ in }) throws {
            let team = try TeamKey()
            authorization = try team.bearer(issuedAt: JudgeFixture.start.wall / 1_000)
            var terms = SimulatedAPNs.Terms()
            terms.keys = [try team.registered()]
            change(&terms)
            var settings = APNsServer.Settings(certificate: .text(""), key: .text(""))
            settings.clock = { JudgeFixture.start }
            service = APNsService(terms, settings)
            let opened = service.state.withLock {
                $0.opened(certificateTopics: nil, at: JudgeFixture.start)
            }
            number = opened.connection
            let bypass = FrameBypass()
            try server.pipeline.syncOperations.addHandlers([
                bypass,
                NIOHTTP2Handler(
                    mode: .server,
                    initialSettings: [
                        HTTP2Setting(parameter: .maxConcurrentStreams, value: opened.streamsMax)
                    ]),
                APNsConnectionHandler(
                    number, service: service, cut: ConnectionCut(), bypass: bypass),
            ])
            try client.pipeline.syncOperations.addHandler(NIOHTTP2Handler(mode: .client))
            for channel in [client, server] {
                try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
            }
        }

        /// Sends a push on the next stream; with `isWhole` false its body stays open.
        func push(
            to token: String = JudgeFixture.token, id: String? = nil, body: Int = 33,
            isWhole: Bool = true
        ) throws {
            stream += 2
            var fields: HPACKHeaders = [
                ":method": "POST", ":scheme": "https", ":authority": "localhost",
                ":path": "/3/device/\(token)", "apns-push-type": "widgets",
                "apns-topic": "com.mygame.push-type.widgets",
                "authorization": authorization,
            ]
            if let id { fields.add(name: "apns-id", value: id) }
            let bytes = IOData.byteBuffer(ByteBuffer(repeating: 0x20, count: body))
            client.write(
                HTTP2Frame(
                    streamID: HTTP2StreamID(stream), payload: .headers(.init(headers: fields))),
                promise: nil)
            client.write(
                HTTP2Frame(
                    streamID: HTTP2StreamID(stream),
                    payload: .data(.init(data: bytes, endStream: isWhole))), promise: nil)
            client.flush()
        }

        /// Carries bytes both ways until none are left; returns the frames that the client
        /// received.
        func exchange() throws -> [String] {
            var frames: [String] = []
            var isMoving = true
            while isMoving {
                isMoving = false
                while let bytes = try client.readOutbound(as: ByteBuffer.self) {
                    isMoving = true
                    try server.writeInbound(bytes)
                }
                server.embeddedEventLoop.run()
                while let bytes = try server.readOutbound(as: ByteBuffer.self) {
                    isMoving = true
                    try client.writeInbound(bytes)
                }
                while let frame = try client.readInbound(as: HTTP2Frame.self) {
                    frames += Self.text(frame)
                }
            }
            return frames
        }

        /// Exchanges bytes, and expects the client to have received these frames.
        func expect(
            _ expected: [String], sourceLocation: SourceLocation = #_sourceLocation
        ) throws {
            let frames = try exchange()
            #expect(frames == expected, sourceLocation: sourceLocation)
        }

        var isServerOpen: Bool { server.isActive }

        func advance(milliseconds: Int64) {
            server.embeddedEventLoop.advanceTime(by: .milliseconds(milliseconds))
        }

        private static func text(_ frame: HTTP2Frame) -> [String] {
            let stream = Int(frame.streamID)
            switch frame.payload {
            case .settings(.settings(let settings)):
                return settings.filter { $0.parameter == .maxConcurrentStreams }.map {
                    "SETTINGS \($0.value)"
                }
            case .headers(let headers):
                let status = headers.headers.first(name: ":status") ?? ""
                return ["HEADERS \(stream) \(status)" + (headers.endStream ? " end" : "")]
            case .data(let data):
                guard case .byteBuffer(let bytes) = data.data else { return ["DATA ?"] }
                return ["DATA \(stream) \(String(buffer: bytes))" + (data.endStream ? " end" : "")]
            case .rstStream(let code):
                return ["RST_STREAM \(stream) \(code.networkCode)"]
            case .goAway(let last, let code, let data):
                let text = data.map { String(buffer: $0) } ?? ""
                return ["GOAWAY \(Int(last)) \(code.networkCode) \(text)"]
            default:
                return []
            }
        }
    }

    @Test func oneStreamIsAllowedAndAThousandAfterTheFirstSuccess() throws {
        let wire = try Wire()
        try wire.expect(["SETTINGS 1"])
        try wire.push()
        try wire.expect(["SETTINGS 1000", "HEADERS 1 200 end"])
        for _ in 0..<3 { try wire.push() }
        let answers = (0..<3).map { "HEADERS \(3 + 2 * $0) 200 end" }
        try wire.expect(answers)
        #expect(wire.service.state.withLock { $0.record.violations }.isEmpty)
    }

    @Test func aRefusalHasAReason() throws {
        let wire = try Wire()
        wire.service.state.withLock {
            $0.script(JudgeFixture.token, [.refused(.unregistered, timestamp: 17)])
        }
        try wire.push()
        try wire.expect([
            "SETTINGS 1", "HEADERS 1 410",
            #"DATA 1 {"reason":"Unregistered","timestamp":17} end"#,
        ])
    }

    @Test func anOverlongBodyIsAnsweredBeforeItsEnd() throws {
        let wire = try Wire()
        _ = try wire.exchange()
        try wire.push(body: 4_097, isWhole: false)
        try wire.expect([
            "HEADERS 1 413", #"DATA 1 {"reason":"PayloadTooLarge"} end"#, "RST_STREAM 1 0",
        ])
    }

    @Test func streamsAreResetWithTheirCode() throws {
        let wire = try Wire()
        wire.service.state.withLock {
            $0.script(JudgeFixture.token, [.resetStream(isTaken: false), .refuseStream])
        }
        _ = try wire.exchange()
        try wire.push()
        try wire.expect(["RST_STREAM 1 2"])
        try wire.push()
        try wire.expect(["RST_STREAM 3 7"])
    }

    @Test func goAwayNamesTheLastStreamAndTheConnectionEndsWithIt() throws {
        let wire = try Wire()
        wire.service.state.withLock {
            $0.script("0a", [.goAway(reason: "Shutdown", includesThis: false)])
            $0.script("0b", [.slow(20, .taken)])
        }
        try wire.push()
        _ = try wire.exchange()
        try wire.push(to: "0b")
        try wire.push(to: "0a")
        try wire.push()
        try wire.expect([#"GOAWAY 3 0 {"reason":"Shutdown"}"#])
        #expect(wire.isServerOpen)
        wire.advance(milliseconds: 20)
        try wire.expect(["HEADERS 3 200 end"])
        #expect(!wire.isServerOpen)
        #expect(wire.service.state.withLock { $0.record.openConnections } == 0)
    }

    @Test func tooManyStreamsEndTheConnection() throws {
        let wire = try Wire { $0.streamsMax = 2 }
        wire.service.state.withLock { $0.script("0b", [.silence(isTaken: false)]) }
        try wire.push()
        try wire.expect(["SETTINGS 1", "SETTINGS 2", "HEADERS 1 200 end"])
        try wire.push(to: "0b")
        try wire.push(to: "0b")
        try wire.expect([])
        #expect(wire.service.state.withLock { $0.record.violations }.isEmpty)
    }
}
