import Testing
import TimelineRuntime
import WidgetModel

@Suite(.timeLimit(.minutes(30))) struct CurlConnectionTests {
    let server: TLSServer

    init() throws { server = try TLSServer() }

    func connection(
        _ change: (inout CurlConnection.Configuration) -> Void = { _ in }
    ) throws -> CurlConnection {
        var configuration = CurlConnection.Configuration(
            gateway: server.origin, caFile: server.caFile, bearerToken: { "secret" })
        change(&configuration)
        return try CurlConnection(configuration)
    }

    /// Waits until no handle is left. The time limit of the suite bounds the wait.
    func allHandlesEnd(_ connection: CurlConnection) async {
        while connection.openExchanges > 0 { await Task.yield() }
    }

    @Test(arguments: ["GET", "PUT", "POST", "DELETE"])
    func aRequestCarriesMethodBodyAndToken(method: String) async throws {
        let connection = try connection()
        let body: [UInt8]? = method == "PUT" ? Array("hello".utf8) : nil
        let response = try await connection.send(
            GatewayRequest(method: method, target: "/echo?a=b", body: body))
        #expect(response.head.status == 200)
        let answer = try JSONValue(parsing: response.body).objectValue
        #expect(answer?["method"] == .string(method))
        #expect(answer?["path"] == "/echo?a=b")
        #expect(answer?["authorization"] == "Bearer secret")
        #expect(answer?["body"] == .string(body == nil ? "" : "hello"))
        #expect(connection.openExchanges == 0)
    }

    @Test func aStreamHandsOutWhatComesUntilItEnds() async throws {
        let connection = try connection()
        let stream = try await connection.stream(GatewayRequest(target: "/drip"))
        #expect(stream.head["content-type"] == "text/event-stream")
        var parser = EventStreamParser()
        var events: [ServerSentEvent] = []
        for try await piece in stream.body { events += try parser.parse(piece) }
        #expect(
            events == [
                ServerSentEvent(id: "a"), ServerSentEvent(id: "a", event: "reload", data: "x"),
            ])
        await allHandlesEnd(connection)
    }

    @Test func cancellingTheReaderEndsTheExchange() async throws {
        let connection = try connection()
        let (started, continuation) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            let stream = try await connection.stream(GatewayRequest(target: "/hold"))
            for try await _ in stream.body { continuation.yield() }
        }
        for await _ in started { break }
        #expect(connection.openExchanges == 1)
        task.cancel()
        #expect(await connectionCode { try await task.value } == .cancelled)
        await allHandlesEnd(connection)
    }

    @Test func cancellingBeforeTheHeadEndsTheExchange() async throws {
        let connection = try connection()
        let task = Task { _ = try await connection.stream(GatewayRequest(target: "/hang")) }
        while connection.openExchanges == 0 { await Task.yield() }
        task.cancel()
        #expect(await connectionCode { try await task.value } == .cancelled)
        await allHandlesEnd(connection)
    }

    @Test func aStreamThatIsDroppedIsClosed() async throws {
        let connection = try connection()
        _ = try await connection.stream(GatewayRequest(target: "/hold"))
        await allHandlesEnd(connection)
    }

    @Test func aSilentStreamIsGivenUp() async throws {
        let connection = try connection { $0.silenceMax = .seconds(2) }
        let stream = try await connection.stream(GatewayRequest(target: "/hold"))
        var read = ""
        let failure = await connectionCode {
            for try await piece in stream.body { read += String(decoding: piece, as: UTF8.self) }
        }
        #expect(failure == .silent)
        #expect(read == "first", "what came before the silence was lost")
        #expect(connection.openExchanges == 0)
    }

    @Test func everyFailureHasItsCode() async throws {
        typealias Change = (inout CurlConnection.Configuration) -> Void
        let echo = GatewayRequest(target: "/echo")
        let failures: [(ConnectionError.Code, GatewayRequest, Change)] = [
            (.timedOut, .init(target: "/hang"), { $0.requestDeadline = .milliseconds(200) }),
            (.notTrusted, echo, { $0.caFile = server.otherCAFile }),
            (.unreachable, echo, { $0.gateway = "https://127.0.0.1:1" }),
            (.tooLarge, .init(target: "/echo", responseBytesMax: 10), { _ in }),
            (.badRequest, echo, { $0.bearerToken = { "a\r\nX-Admin: 1" } }),
        ]
        for (expected, request, change) in failures {
            let connection = try connection(change)
            #expect(await connectionCode { _ = try await connection.send(request) } == expected)
            await allHandlesEnd(connection)
        }
    }

    @Test func aSlowReaderMakesThePeerWait() async throws {
        let connection = try connection { $0.bufferBytesMax = 64 * 1024 }
        let stream = try await connection.stream(GatewayRequest(target: "/flood"))
        var pieces = stream.body.makeAsyncIterator()
        _ = try await pieces.next()
        // The server counts the bytes it could send, and stops when every buffer on the way is
        // full.
        var before = -1
        var now = 0
        while now != before {
            before = now
            for _ in 0..<3 {
                let answer = try await connection.send(GatewayRequest(target: "/sent"))
                now = Int(String(decoding: answer.body, as: UTF8.self)) ?? 0
            }
        }
        #expect(now < 128 * 1024 * 1024, "256 MiB were offered and more than half were taken")
        var read = 0
        while let piece = try await pieces.next(), read < 1 << 24 {
            #expect(piece.count <= 64 * 1024 + 16 * 1024)
            read += piece.count
        }
        #expect(read >= 1 << 24, "a stream that was paused did not go on")
    }

    @Test func closingEndsWhatIsOpenAndRefusesWhatComes() async throws {
        let connection = try connection()
        let stream = try await connection.stream(GatewayRequest(target: "/hold"))
        connection.close()
        #expect(await connectionCode { for try await _ in stream.body {} } == .cancelled)
        let late = GatewayRequest(target: "/echo")
        #expect(await connectionCode { _ = try await connection.send(late) } == .cancelled)
        await allHandlesEnd(connection)
    }

    @Test(arguments: ["http://host", "https://host/path"])
    func onlyAnHTTPSOriginIsAGateway(gateway: String) {
        #expect(throws: ConnectionError.self) { try CurlConnection(.init(gateway: gateway)) }
    }
}
