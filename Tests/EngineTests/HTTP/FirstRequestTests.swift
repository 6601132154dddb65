import GatewayTestSupport
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayServer

/// The fast path must agree with the HTTP decoder, or leave the request to it.
@Suite struct FirstRequestTests {
    private static let plain =
        "GET /v1/apps/a/clients/c/reloads?since=x HTTP/1.1\r\nHost: localhost:8443\r\n"
        + "Authorization: Bearer abc.def\r\nAccept: text/event-stream\r\n"
        + "Last-Event-ID:  0123 \t\r\nTimeline-Registration: d\r\nUser-Agent: x/1 (y; z)\r\n\r\n"

    private func read(_ text: String) -> ReloadsRequest? {
        FirstRequest.read(ByteBuffer(string: text), ConnectionSettings())
    }

    @Test func aPlainRequestIsReadWhole() throws {
        let request = try #require(read(Self.plain))
        #expect(
            request
                == ReloadsRequest(
                    path: "/v1/apps/a/clients/c/reloads?since=x",
                    authorization: "Bearer abc.def", lastEventID: "0123", registration: "d",
                    wantsStream: true))
        #expect(try decoded(Array(Self.plain.utf8)) == request)
    }

    @Test func eventStreamsMayBeListedInAnyAcceptField() throws {
        for (accepts, wantsStream) in [
            ([], false), (["*/*"], false), (["text/html, TEXT/event-stream;q=0.5"], true),
            (["text/html", "text/event-stream"], true), (["text/event-stream", "a/b"], true),
        ] {
            let fields = accepts.map { "accept: \($0)\r\n" }.joined()
            let request = read("GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n")
            #expect(request?.wantsStream == wantsStream)
            #expect(
                try decoded(Array("GET / HTTP/1.1\r\nHost: a\r\n\(fields)\r\n".utf8)) == request)
        }
    }

    @Test(arguments: [
        "", "\r\n", "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET / HTTP/1.1\r\nHost:\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET",
        "GET / HTTP/1.0\r\nHost: a\r\n\r\n", "POST / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /\u{E4} HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n X: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: \u{1}\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: b\r\nauthorization: c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nLast-Event-ID: b\r\nLAST-EVENT-ID: c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nTimeline-Registration: b\r\n"
            + "timeline-registration: c\r\n\r\n",
    ])
    func anythingElseIsLeftToTheDecoder(text: String) {
        #expect(read(text) == nil)
    }

    @Test func tooManyOrTooLongFieldsAreLeftToTheDecoder() {
        var settings = ConnectionSettings()
        settings.headerFieldsMax = 6
        let buffer = ByteBuffer(string: Self.plain)
        #expect(FirstRequest.read(buffer, settings) != nil)
        settings.headerFieldsMax = 5
        #expect(FirstRequest.read(buffer, settings) == nil)
        settings.headerFieldsMax = 6
        settings.headerBytesMax = buffer.readableBytes - 1
        #expect(FirstRequest.read(buffer, settings) == nil)
    }

    @Test func whateverItReadsTheDecoderReadsAlike() throws {
        var random = SplitMix64(seed: 20_261_121)
        let spice: [UInt8] = Array(" \t\r\n:/?#\"\\,;%\0\u{7F}".utf8) + [0x80, 0xFF]
        var read = 0
        for _ in 0..<20_000 {
            var bytes = Array(Self.plain.utf8)
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                let byte =
                    Bool.random(using: &random)
                    ? spice[Int.random(in: 0..<spice.count, using: &random)]
                    : UInt8.random(in: 0x20...0x7E, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: bytes[place] = byte
                case 1: bytes.insert(byte, at: place)
                case 2: bytes.remove(at: place)
                default:
                    let end = min(bytes.count, place + Int.random(in: 1...40, using: &random))
                    bytes.insert(contentsOf: bytes[place..<end], at: place)
                }
            }
            guard
                let request = FirstRequest.read(ByteBuffer(bytes: bytes), ConnectionSettings())
            else { continue }
            read += 1
            let other = try? decoded(bytes)
            guard other == request else {
                let text = String(decoding: bytes, as: UTF8.self)
                Issue.record("\(text.debugDescription): \(request), not \(other as Any)")
                return
            }
        }
        #expect(read > 2_000)
    }

    /// Returns the request that the HTTP/1.1 handlers decode from the same bytes; throws when they
    /// reject them.
    private func decoded(_ bytes: [UInt8]) throws -> ReloadsRequest? {
        let channel = EmbeddedChannel()
        defer { _ = try? channel.finish() }
        let pipeline = channel.pipeline.syncOperations
        try pipeline.configureHTTPServerPipeline(
            withPipeliningAssistance: false, withErrorHandling: false)
        try channel.writeInbound(ByteBuffer(bytes: bytes))
        guard case .head(let request)? = try channel.readInbound(as: HTTPServerRequestPart.self),
            request.problem(isHTTP2: false, ConnectionSettings()) == nil,
            case .end(nil)? = try channel.readInbound(as: HTTPServerRequestPart.self),
            try channel.readInbound(as: HTTPServerRequestPart.self) == nil
        else { return nil }
        return ReloadsRequest(request)
    }
}
