import GatewayTLS
import GatewayTestSupport
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Synchronization
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayServer

/// The requests of one channel, and the routes that respond to them.
@Suite struct HTTPConnectionHandlerTests {
    private struct Connection {
        let channel = NIOAsyncTestingChannel()
        let handler: NIOLoopBound<HTTPConnectionHandler>
        let isHTTP2: Bool

        init(
            isHTTP2: Bool = false, _ respond: @escaping @Sendable (GatewayRequest) async -> String?
        ) async throws {
            self.isHTTP2 = isHTTP2
            let loop = channel.testingEventLoop
            handler = try await loop.executeInContext { [channel] in
                let responder = Responder(executor: nil) { request, _ in
                    await respond(request).map {
                        RouteResponse(.ok, body: ByteBuffer(string: $0))
                    }
                }
                let setup = HTTPPipeline(
                    responder: responder, tlsSettings: TLSServerSettings(), loops: [loop])
                let handler = HTTPConnectionHandler(
                    setup, tls: nil, isHTTP2: isHTTP2, requestDue: loop.now + .seconds(15),
                    progress: ConnectionProgress())
                try channel.pipeline.syncOperations.addHandler(handler)
                return NIOLoopBound(handler, eventLoop: loop)
            }
            try await channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1)).get()
        }

        /// Delivers these parts in one read.
        func take(_ parts: HTTPServerRequestPart...) async throws {
            try await channel.testingEventLoop.executeInContext { [channel] in
                for part in parts { channel.pipeline.fireChannelRead(part) }
                channel.pipeline.fireChannelReadComplete()
            }
        }

        /// Returns whether a read is allowed now.
        func mayRead() async throws -> Bool {
            try await channel.testingEventLoop.executeInContext { [handler] in
                handler.value.machine.readRequested()
            }
        }

        func isIdle() async throws -> Bool {
            try await channel.testingEventLoop.executeInContext { [handler] in
                handler.value.machine.isIdle
            }
        }

        /// Fires an error, or an event, on the pipeline.
        func fire(_ fire: @escaping @Sendable (ChannelPipeline) -> Void) async throws {
            try await channel.testingEventLoop.executeInContext { [channel] in
                fire(channel.pipeline)
            }
        }

        /// Waits for `count` answers and returns them, as status and body.
        func answers(_ count: Int) async throws -> [String] {
            var answers: [String] = []
            try await eventually("\(count) answers are there", details: { "\(answers)" }) {
                await channel.testingEventLoop.run()
                while answers.count < count,
                    let answer = try await isHTTP2 ? partsAnswer() : bytesAnswer()
                { answers.append(answer) }
                return answers.count == count
            }
            return answers
        }

        /// Waits for an answer by HTTP/1.1 and returns all of it.
        func text() async throws -> String {
            while true {
                await channel.testingEventLoop.run()
                if case .byteBuffer(let bytes)? = try await channel.readOutbound(as: IOData.self) {
                    return String(buffer: bytes)
                }
                try await Task.sleep(for: .milliseconds(1))
            }
        }

        /// Returns the next answer by HTTP/1.1, which is written in one piece.
        func bytesAnswer() async throws -> String? {
            guard case .byteBuffer(let bytes)? = try await channel.readOutbound(as: IOData.self)
            else { return nil }
            let halves = String(buffer: bytes).split(separator: "\r\n\r\n", maxSplits: 1)
            let words = try #require(halves.first).split(separator: " ", maxSplits: 2)
            #expect(words.first == "HTTP/1.1")
            return "\(words[1]) \(halves.last ?? "")"
        }

        /// Returns the next answer by HTTP/2.
        private func partsAnswer() async throws -> String? {
            var answer: String?
            while let part = try await channel.readOutbound(as: HTTPServerResponsePart.self) {
                switch part {
                case .head(let head): answer = "\(head.status.code)"
                case .body(.byteBuffer(let body)): answer? += " " + String(buffer: body)
                case .body: Issue.record("no bytes")
                case .end: return answer
                }
            }
            return nil
        }

        /// Runs the loop until the connection is closed.
        func waitForEnd() async throws {
            try await eventually("the connection is closed") {
                await channel.testingEventLoop.run()
                return !channel.isActive
            }
        }
    }

    private static func head(_ path: String, _ fields: HTTPHeaders = [:]) -> HTTPServerRequestPart {
        var headers: HTTPHeaders = ["host": "a"]
        headers.add(contentsOf: fields)
        return .head(
            HTTPRequestHead(version: .http1_1, method: .POST, uri: path, headers: headers))
    }

    private static func body(_ text: String) -> HTTPServerRequestPart {
        .body(ByteBuffer(string: text))
    }

    /// Returns the path and the body.
    private static func echo(_ request: GatewayRequest) async -> String? {
        let path = request.head.uri
        do {
            return path + " " + String(decoding: try await request.bytes(upTo: 100), as: UTF8.self)
        } catch {
            return path + " \(type(of: error))"
        }
    }

    @Test func requestsOfOneReadAreAnsweredOneAfterAnother() async throws {
        let underWay = Mutex((now: 0, most: 0))
        let connection = try await Connection { request in
            underWay.withLock {
                $0.now += 1
                $0.most = max($0.most, $0.now)
            }
            await Task.yield()
            underWay.withLock { $0.now -= 1 }
            return await Self.echo(request)
        }
        try await connection.take(
            Self.head("/1"), Self.body("a"), Self.body("b"), .end(nil), Self.head("/2"), .end(nil),
            Self.head("/3"), Self.body("c"), .end(nil))
        #expect(try await connection.answers(3) == ["200 /1 ab", "200 /2 ", "200 /3 c"])
        #expect(underWay.withLock { $0.most } == 1)
    }

    /// Nothing may be written into the middle of an answer that takes several rounds, and the
    /// connection ends after the last one.
    @Test func whatFollowsALongAnswerWaitsForItsEnd() async throws {
        let long = String(repeating: "x", count: 1_000_000)
        let asked = Mutex([String]())
        let connection = try await Connection { request in
            asked.withLock { $0.append(request.head.uri) }
            return request.head.uri == "/short" ? "short" : long
        }
        let last = HTTPRequestHead(
            version: .http1_1, method: .POST, uri: "/last",
            headers: ["host": "a", "connection": "close"])
        try await connection.take(
            Self.head("/long"), .end(nil), Self.head("/short"), .end(nil), .head(last), .end(nil))
        let loop = connection.channel.testingEventLoop
        var text = ""
        try await eventually("every answer is there") {
            await loop.run()
            while case .byteBuffer(let bytes)? =
                try await connection.channel.readOutbound(as: IOData.self)
            {
                text += String(buffer: bytes)
            }
            if text.utf8.count < 1_000_000 {
                #expect(asked.withLock { $0.count } <= 1)
            }
            await loop.advanceTime(by: ResponseWriter.pause)
            return text.utf8.count >= 2_000_000
        }
        let answers = text.split(separator: "HTTP/1.1 200 OK\r\n").map { answer in
            answer.split(separator: "\r\n\r\n", maxSplits: 1).last.map(String.init)
        }
        #expect(answers == [long, "short", long])
    }

    @Test func nothingIsReadWhileRequestsWait() async throws {
        let barrier = Barrier()
        let connection = try await Connection { request in
            await barrier.pass()
            return await Self.echo(request)
        }
        try await connection.take(Self.head("/1"), .end(nil))
        #expect(try await connection.mayRead())
        try await connection.take(Self.head("/2"))
        #expect(try await !connection.mayRead())
        try await connection.take(.end(nil))
        #expect(try await !connection.mayRead())
        barrier.open()
        #expect(try await connection.answers(2) == ["200 /1 ", "200 /2 "])
        #expect(try await connection.mayRead())
        #expect(try await connection.isIdle())
    }

    @Test func aBodyInPiecesIsOneForItsRoute() async throws {
        let connection = try await Connection(Self.echo)
        try await connection.take(Self.head("/1"), Self.body("a"))
        try await connection.take(Self.body("b"))
        try await connection.take(Self.body("c"), .end(nil))
        #expect(try await connection.answers(1) == ["200 /1 abc"])
        // Trailers are of no interest.
        try await connection.take(Self.head("/2"))
        try await connection.take(.end(["x-test": "ok"]))
        #expect(try await connection.answers(1) == ["200 /2 "])
    }

    @Test func aBodyThatNobodyReadsIsNotKept() async throws {
        let barrier = Barrier()
        let connection = try await Connection { _ in
            await barrier.pass()
            return "no"
        }
        try await connection.take(Self.head("/1"))
        var pieces = 0
        while try await connection.mayRead(), pieces < 1_000 {
            try await connection.take(Self.body("x"))
            pieces += 1
        }
        #expect(pieces < 100)
        barrier.open()
        #expect(try await connection.answers(1) == ["200 no"])
        try await connection.waitForEnd()
    }

    @Test func aBodyThatComesTooSlowlyIsAProblemOfItsRoute() async throws {
        let connection = try await Connection { request in
            do {
                let bytes = try await request.bytes(upTo: 1_000_000)
                return "\(bytes.count)"
            } catch {
                return "\((error as? ProblemDetails)?.status ?? 0)"
            }
        }
        try await connection.take(
            Self.head("/1", ["content-length": "250000"]), Self.body("a"))
        let loop = connection.channel.testingEventLoop
        for _ in 0..<31 {
            await loop.advanceTime(by: .seconds(1))
            try await connection.take(Self.body(String(repeating: "x", count: 8_000)))
        }
        try await connection.take(.end(nil))
        #expect(try await connection.answers(1) == ["200 248001"])
        try await connection.take(Self.head("/1", ["content-length": "90"]), Self.body("a"))
        await loop.advanceTime(by: .seconds(31))
        let late = try await connection.text()
        #expect(late.hasSuffix("\r\n\r\n408") && late.contains("Connection: close\r\n"), "\(late)")
        try await connection.waitForEnd()
    }

    @Test func aBodyHasTimeWhileOthersOfItsConnectionCome() async throws {
        let connection = try await Connection(isHTTP2: true, Self.echo)
        let (loop, handler) = (connection.channel.testingEventLoop, connection.handler)
        try await connection.take(Self.head("/1"))
        for _ in 0..<60 {
            try await loop.executeInContext {
                handler.value.progress.received(8_000, now: loop.now, ConnectionSettings())
            }
            await loop.advanceTime(by: .seconds(1))
        }
        let due = try await loop.executeInContext { handler.value.progress.bodiesDue }
        try await connection.take(Self.body("abc"), .end(nil))
        #expect(try await connection.answers(1) == ["200 /1 abc"])
        #expect(try await loop.executeInContext { handler.value.progress.bodiesDue } > due)
    }

    @Test func aBodyThatIsTooLargeIsRefusedHoweverItComes() async throws {
        let connection = try await Connection(isHTTP2: true, Self.echo)
        let long = Self.body(String(repeating: "x", count: 101))
        try await connection.take(Self.head("/1"), long, .end(nil))
        #expect(try await connection.answers(1) == ["200 /1 ProblemDetails"])
        try await connection.take(Self.head("/2"), long)
        #expect(try await connection.answers(1) == ["200 /2 ProblemDetails"])
        // In HTTP/2 the rest of the body affects only its own stream.
        try await connection.take(long, .end(nil))
        #expect(connection.channel.isActive)
    }

    @Test func aBodyThatBreaksOffIsAnErrorAndTheEnd() async throws {
        let connection = try await Connection(Self.echo)
        try await connection.take(Self.head("/1"), Self.body("a"))
        try await connection.fire { $0.fireErrorCaught(HTTPParserError.invalidChunkSize) }
        #expect(try await connection.answers(1) == ["200 /1 HTTPParserError"])
        try await connection.waitForEnd()
        #expect(try await connection.bytesAnswer() == nil)
    }

    @Test func aRouteWithoutAnAnswerEndsTheConnection() async throws {
        let connection = try await Connection { _ in nil }
        try await connection.take(Self.head("/1"), .end(nil))
        try await connection.waitForEnd()
    }

    @Test func whoDoesNotReadIsNotAnswered() async throws {
        let begun = Mutex(0)
        let connection = try await Connection { request in
            begun.withLock { $0 += 1 }
            return await Self.echo(request)
        }
        try await connection.channel.testingEventLoop.executeInContext { [connection] in
            connection.channel.isWritable = false
            connection.channel.pipeline.fireChannelWritabilityChanged()
        }
        try await connection.take(Self.head("/1"), .end(nil))
        #expect(try await !connection.mayRead())
        #expect(begun.withLock { $0 } == 0)
        try await connection.channel.testingEventLoop.executeInContext { [connection] in
            connection.channel.isWritable = true
            connection.channel.pipeline.fireChannelWritabilityChanged()
        }
        #expect(try await connection.answers(1) == ["200 /1 "])
    }

    @Test func theRouteOfALostConnectionLearnsIt() async throws {
        let outcome = Mutex<String?>(nil)
        let connection = try await Connection { request in
            let text = await Self.echo(request)
            outcome.withLock { $0 = text }
            return text
        }
        try await connection.take(Self.head("/1"), Self.body("a"))
        try await connection.channel.close()
        try await eventually("the route has ended") { outcome.withLock { $0 != nil } }
        #expect(outcome.withLock { $0 } == "/1 ChannelError")
    }
}

@Suite struct OpenChannelsTests {
    @Test func theEndWaitsForChannelsAndAnswers() async throws {
        let open = OpenChannels()
        let channel = NIOAsyncTestingChannel()
        #expect(open.add(channel))
        open.beginAnswer()
        let over = Barrier()
        await withDiscardingTaskGroup { group in
            group.addTask {
                await open.ended()
                over.open()
            }
            open.stop()
            #expect(!open.add(NIOAsyncTestingChannel()))
            open.cut()
            await channel.testingEventLoop.run()
            #expect(!over.isOpen)
            open.endAnswer()
        }
        #expect(over.isOpen)
    }
}

/// Suspends callers until it is opened.
private final class Barrier: Sendable {
    private let state = Mutex<(isOpen: Bool, waiting: [CheckedContinuation<Void, Never>])>(
        (false, []))

    var isOpen: Bool { state.withLock { $0.isOpen } }

    func pass() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for one in waiting { one.resume() }
    }
}

@Suite struct HTTP1AnswerTests {
    private func text(_ answer: RouteResponse) -> String {
        String(buffer: answer.http1(bodyBytesMax: .max).beginning)
    }

    @Test func anAnswerIsFramedByItsLength() {
        #expect(
            text(RouteResponse(.ok, headers: ["A": "b"], body: ByteBuffer(string: "body")))
                == "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 4\r\n\r\nbody")
        #expect(
            text(RouteResponse(.badRequest))
                == "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    }

    @Test func theRestOfALongBodyFollows() {
        let answer = RouteResponse(.ok, body: ByteBuffer(string: "0123456789"))
        for length in 0..<10 {
            let (beginning, rest) = answer.http1(bodyBytesMax: length)
            #expect(rest?.readableBytes == 10 - length)
            let all = String(buffer: beginning) + String(buffer: rest ?? ByteBuffer())
            #expect(all == text(answer))
        }
        #expect(answer.http1(bodyBytesMax: 10).rest == nil)
    }

    @Test func numbersAreTheJSONThatATreeOfThemIs() throws {
        let answers: [(RouteResponse, JSONValue)] = [
            (
                RouteResponse(.accepted, numbers: ["a": 0, "bc": -1, "d": .max]),
                .object(["a": .integer(0), "bc": .integer(-1), "d": .integer(.max)])
            ),
            (RouteResponse(.accepted, numbers: [:]), .object([:])),
        ]
        for (answer, json) in answers {
            let tree = RouteResponse(.accepted, json: json)
            #expect(answer.body == tree.body)
            #expect(text(answer) == text(tree))
        }
    }

    @Test func whatMayHaveNoBodyHasNoLength() {
        for (status, line) in [
            (HTTPResponseStatus.noContent, "204 No Content"), (.notModified, "304 Not Modified"),
        ] {
            #expect(
                text(RouteResponse(status, headers: ["A": "b"], body: ByteBuffer(string: "body")))
                    == "HTTP/1.1 \(line)\r\nA: b\r\n\r\n")
        }
    }
}

@Suite struct FieldNameTests {
    @Test func fieldsOfOneNameAreOneList() {
        let headers: HTTPHeaders = [
            "accept": "a", "ACCEPT": "b", "Accept-Encoding": "c", "host": "d", "acceps": "e",
        ]
        #expect(headers.value(FieldName.accept) == "a, b")
        #expect(headers.value(FieldName.host) == "d")
        #expect(headers.value(FieldName.date) == nil)
        for (text, value) in [
            ("a b", "a b"), (" \ta b", "a b"), ("a b \t ", "a b"), (" ", ""), ("", ""),
            ("\u{E4} ", "\u{E4}"),
        ] { #expect(text.fieldValue == value) }
        #expect("CE-id".isField(beginningWith: "ce-"))
        #expect(!"ce".isField(beginningWith: "ce-"))
        #expect(!"cd-id".isField(beginningWith: "ce-"))
    }
}
