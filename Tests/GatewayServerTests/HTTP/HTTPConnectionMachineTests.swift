import NIOCore
import NIOHTTP1
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayHTTP

/// The rules of a connection, without a channel.
@Suite struct HTTPConnectionMachineTests {
    /// A machine, with the current time.
    private struct Connection {
        var machine: HTTPConnectionMachine
        var now = NIODeadline.uptimeNanoseconds(0)

        init(isHTTP2: Bool = false, offersStreams: Bool = false) {
            var settings = ConnectionSettings()
            settings.idleTimeout = .seconds(75)
            settings.headerFieldsMax = 3
            machine = HTTPConnectionMachine(
                isHTTP2: isHTTP2, offersStreams: offersStreams, settings: settings)
        }

        mutating func head(
            _ path: String, _ method: HTTPMethod = .POST, version: HTTPVersion = .http1_1,
            _ fields: HTTPHeaders = [:]
        ) -> [String] {
            var headers: HTTPHeaders = ["Host": "a"]
            headers.add(contentsOf: fields)
            return part(
                .head(
                    HTTPRequestHead(
                        version: version, method: method, uri: path, headers: headers)))
        }

        mutating func body(_ text: String) -> [String] { part(.body(ByteBuffer(string: text))) }

        mutating func end() -> [String] { part(.end(nil)) }

        private mutating func part(_ part: HTTPServerRequestPart) -> [String] {
            machine.received(part, now: now).map(\.words)
        }

        /// Receives a whole request.
        mutating func request(_ path: String, _ fields: HTTPHeaders = [:]) -> [String] {
            head(path, fields) + end()
        }

        mutating func head(_ path: String, _ fields: HTTPHeaders) -> [String] {
            head(path, .POST, version: .http1_1, fields)
        }

        mutating func readCompleted() -> [String] { machine.readCompleted().map(\.words) }

        mutating func read() -> String { machine.readRequested() ? "read" : "held" }

        mutating func written() -> [String] { machine.responseWritten(now: now).map(\.words) }

        mutating func failed(_ error: any Error) -> [String] { machine.failed(error).map(\.words) }

        mutating func inputClosed() -> [String] { machine.inputClosed().map(\.words) }

        mutating func connectionInputClosed() -> [String] {
            machine.connectionInputClosed().map(\.words)
        }

        mutating func quiesce() -> [String] { machine.quiesce().map(\.words) }

        mutating func writable(_ isWritable: Bool) -> [String] {
            machine.writabilityChanged(to: isWritable).map(\.words)
        }

        mutating func requestTimedOut() -> [String] { machine.requestTimedOut().map(\.words) }

        mutating func idleTimedOut(isWriting: Bool = false) -> [String] {
            machine.idleTimedOut(now: now, isWriting: isWriting).map(\.words)
        }

        /// Receives a request for an event stream.
        mutating func streamRequest(_ path: String = "/stream") -> [String] {
            head(path, .GET, ["Accept": "text/event-stream"])
        }
    }

    // MARK: Requests and responses

    @Test func aWholeRequestIsRespondedToAtItsEnd() {
        var connection = Connection()
        #expect(connection.head("/1") == ["cancel request timer"])
        #expect(connection.body("a") == [])
        #expect(connection.body("b") == [])
        #expect(connection.end() == ["cancel request timer", "respond /1 ab"])
        #expect(connection.readCompleted() == [])
        #expect(connection.written() == ["idle timer 75"])
        #expect(connection.machine.isIdle)
    }

    @Test func requestsAreRespondedToOneAfterAnother() {
        var connection = Connection()
        _ = connection.request("/1")
        #expect(connection.request("/2") == ["cancel request timer"])
        #expect(connection.head("/3") == [])
        #expect(connection.body("c") == [])
        #expect(connection.readCompleted() == ["request timer"])
        #expect(connection.written() == ["idle timer 75", "respond /2"])
        #expect(connection.written() == ["idle timer 75", "respond /3 c…"])
        #expect(connection.body("d") == ["forward d"])
        #expect(connection.end() == ["cancel request timer", "end body"])
        #expect(connection.written() == ["idle timer 75"])
    }

    @Test func aRequestStartsWithoutItsEndWhenTheReadIsComplete() {
        var connection = Connection()
        _ = connection.head("/1")
        _ = connection.body("a")
        #expect(connection.readCompleted() == ["request timer", "respond /1 a…"])
        #expect(connection.body("b") == ["forward b"])
        #expect(connection.readCompleted() == ["request timer"])
        #expect(connection.end() == ["cancel request timer", "end body"])
        #expect(connection.readCompleted() == [])
    }

    @Test func readingPausesWhileARequestHasNoRoute() {
        var connection = Connection()
        #expect(connection.read() == "read")
        _ = connection.request("/1")
        #expect(connection.read() == "read")
        _ = connection.head("/2")
        #expect(connection.read() == "held")
        _ = connection.end()
        #expect(connection.read() == "held")
        #expect(connection.written() == ["idle timer 75", "respond /2", "read"])
        #expect(connection.read() == "read")
    }

    @Test func readingPausesWhileTheBodyIsFull() {
        var connection = Connection()
        _ = connection.head("/1")
        _ = connection.readCompleted()
        #expect(connection.read() == "read")
        connection.machine.bodyFilled()
        #expect(connection.read() == "held")
        #expect(connection.machine.bodyWanted().map(\.words) == ["read"])
        #expect(connection.machine.bodyWanted() == [])
        connection.machine.bodyFilled()
        #expect(connection.read() == "held")
        #expect(connection.end() == ["cancel request timer", "end body", "read"])
    }

    @Test func whoDoesNotReadGetsNoFurtherResponse() {
        var connection = Connection()
        #expect(connection.writable(false) == [])
        #expect(connection.request("/1") == ["cancel request timer", "cancel request timer"])
        #expect(connection.read() == "held")
        #expect(connection.quiesce() == ["cancel pieces"])
        #expect(connection.writable(true) == ["respond /1", "read"])
        #expect(connection.written() == ["idle timer 75", "close"])
    }

    /// A request whose body has not arrived yet must not wait for it for ever.
    @Test func aRequestThatStartsLateIsReadOn() {
        var connection = Connection()
        _ = connection.writable(false)
        _ = connection.head("/1")
        _ = connection.readCompleted()
        #expect(connection.read() == "held")
        #expect(connection.writable(true) == ["respond /1…", "read"])
    }

    @Test func theRequestDecidesHowItsResponseIsWritten() throws {
        for (version, method, field, isLast) in [
            (.http1_1, .GET, nil, false), (.http1_1, .HEAD, "keep-alive", false),
            (.http1_1, .POST, "close", true), (.http1_1, .POST, "foo, Close", true),
            (.http1_0, .GET, nil, true), (.http1_0, .HEAD, "keep-alive", true),
        ] as [(HTTPVersion, HTTPMethod, String?, Bool)] {
            for isHTTP2 in [false, true] {
                var connection = Connection(isHTTP2: isHTTP2)
                let fields: HTTPHeaders = field.map { ["Connection": $0] } ?? [:]
                _ = connection.head("/", method, version: version, fields)
                #expect(connection.machine.framing == nil)
                _ = connection.end()
                let framing = try #require(connection.machine.framing)
                #expect(framing.isLast == (isLast && !isHTTP2))
                #expect(framing.omitsBody == (method == .HEAD))
                #expect(framing.allowsChunks == (version == .http1_1))
            }
        }
    }

    /// The decoder reads nothing behind such a request; whoever sent more has to know.
    @Test func `a request that may leave HTTP is the last`() {
        for (method, fields) in [
            (.GET, ["Connection": "Upgrade", "Upgrade": "h2c"]), (.GET, ["upgrade": "websocket"]),
            (.CONNECT, [:]),
        ] as [(HTTPMethod, HTTPHeaders)] {
            var connection = Connection()
            _ = connection.head("/1", method, fields)
            _ = connection.end()
            #expect(connection.machine.framing?.isLast == true)
            #expect(connection.written() == ["idle timer 75", "close output"])
        }
    }

    @Test func `fields of HTTP/2 above 16 KiB end their stream`() {
        for (count, refusal) in [(16 * 1024 - 200, false), (16 * 1024, true)] {
            var connection = Connection(isHTTP2: true)
            let actions = connection.head("/", ["a": String(repeating: "a", count: count)])
            #expect(actions.contains("refuse 431") == refusal)
        }
    }

    @Test func `a refusal of HEAD has no body`() {
        var connection = Connection()
        #expect(
            connection.head("/", .HEAD, ["a": "", "b": "", "c": ""])
                == ["cancel request timer", "refuse 431 without a body"])
    }

    @Test func nothingFollowsTheLastResponse() {
        var connection = Connection()
        _ = connection.request("/1", ["Connection": "close"])
        #expect(connection.request("/2") == ["cancel request timer"])
        #expect(connection.read() == "held")
        #expect(connection.written() == ["idle timer 75", "close output", "read"])
        #expect(connection.request("/3") == [])
        #expect(connection.quiesce() == ["cancel pieces"])
        #expect(connection.inputClosed() == [])
        #expect(connection.failed(HTTPParserError.invalidMethod) == [])
        connection.now = connection.now + .seconds(75)
        #expect(connection.idleTimedOut() == ["close"])
    }

    @Test(arguments: [false, true]) func aResponseMayComeBeforeTheEndOfItsBody(isHTTP2: Bool) {
        var connection = Connection(isHTTP2: isHTTP2)
        _ = connection.head("/1")
        _ = connection.readCompleted()
        connection.machine.bodyFilled()
        #expect(connection.read() == "held")
        // The rest of the body blocks an HTTP/1.1 connection, but only the stream in HTTP/2.
        #expect(connection.written() == (isHTTP2 ? ["end body", "read"] : ["end body", "close"]))
        #expect(connection.body("x") == [])
        #expect(connection.readCompleted() == (isHTTP2 ? ["request timer"] : []))
        #expect(connection.end() == (isHTTP2 ? ["cancel request timer"] : []))
    }

    @Test func aRouteMayRespondNoMore() {
        var connection = Connection()
        _ = connection.request("/1")
        #expect(connection.machine.abort() == [.close])
        #expect(connection.machine.framing == nil)
        #expect(connection.written() == [])
        _ = connection.machine.channelClosed()
        #expect(connection.machine.abort() == [])
    }

    // MARK: Expect

    @Test(arguments: [false, true]) func theBodyIsAskedForAtOnce(isHTTP2: Bool) {
        var connection = Connection(isHTTP2: isHTTP2)
        #expect(
            connection.head("/1", ["Expect": "100-Continue"])
                == ["cancel request timer", "continue"])
        #expect(connection.readCompleted() == ["request timer", "respond /1…"])
    }

    /// Between the pieces of a response `100 Continue` would be part of its body.
    @Test func theBodyIsAskedForBehindTheResponseBefore() {
        var connection = Connection()
        _ = connection.request("/1")
        #expect(connection.head("/2", ["Expect": "100-continue"]) == [])
        #expect(connection.readCompleted() == ["request timer"])
        #expect(connection.written() == ["idle timer 75", "continue", "respond /2…"])
    }

    @Test func aBodyThatHasComeIsNotAskedFor() {
        var connection = Connection()
        _ = connection.request("/1")
        _ = connection.request("/2", ["Expect": "100-continue"])
        #expect(connection.written() == ["idle timer 75", "respond /2"])
        _ = connection.written()
        #expect(connection.head("/3", ["Expect": "something"]) == [])
    }

    // MARK: Refusals and failures

    @Test(
        arguments: [
            ("/1", ["Host": "b"], 400), ("/\u{E4}", [:], 400), ("/1 2", [:], 400),
            ("/1", ["A": "", "B": "", "C": ""], 431),
        ] as [(String, HTTPHeaders, Int)])
    func aRequestIsRefusedBeforeItIsRead(path: String, fields: HTTPHeaders, status: Int) {
        var connection = Connection()
        #expect(connection.head(path, fields) == ["cancel request timer", "refuse \(status)"])
        #expect(connection.body("x") == [])
        #expect(connection.end() == [])
    }

    @Test func hostIsOneAndNotEmpty() {
        func status(_ hosts: [String], isHTTP2: Bool = false, _ version: HTTPVersion) -> Int? {
            HTTPRequestHead(
                version: version, method: .GET, uri: "/",
                headers: HTTPHeaders(hosts.map { ("Host", $0) })
            ).problem(isHTTP2: isHTTP2, ConnectionSettings())?.status
        }
        #expect(status(["a"], .http1_1) == nil)
        #expect(status([], .http1_1) == 400)
        #expect(status([], .http1_0) == nil)
        #expect(status([""], .http1_1) == 400)
        #expect(status([""], .http1_0) == 400)
        #expect(status(["a", "a"], .http1_1) == 400)
        #expect(status(["a", "a"], isHTTP2: true, .http1_1) == nil)
    }

    @Test func aRefusalWaitsForTheResponsesBefore() {
        var connection = Connection()
        _ = connection.request("/1")
        #expect(connection.head("/2", ["Host": "b"]) == ["cancel request timer"])
        #expect(connection.request("/3") == [])
        #expect(connection.written() == ["idle timer 75", "refuse 400"])
    }

    @Test func whatIsNotHTTPIsRefusedBehindTheRequestsThatAre() {
        var connection = Connection()
        #expect(connection.failed(ChannelError.eof) == [], "its channel closes by itself")
        #expect(connection.failed(HTTPParserError.headerOverflow) == ["refuse 431"])
        connection = Connection()
        _ = connection.request("/1")
        _ = connection.request("/2")
        _ = connection.head("/3")
        #expect(connection.failed(HTTPParserError.invalidMethod) == ["cancel request timer"])
        #expect(connection.failed(ChannelError.eof) == [], "the first error counts")
        #expect(connection.end() == [])
        #expect(connection.written() == ["idle timer 75", "respond /2"])
        #expect(connection.written() == ["idle timer 75", "refuse 400"])
    }

    @Test func anErrorOfTheChannelIsTheEnd() {
        var connection = Connection()
        _ = connection.request("/1")
        _ = connection.failed(ChannelError.eof)
        #expect(connection.written() == ["idle timer 75", "close"])
    }

    @Test func aBodyThatBreaksOffFailsAndEndsTheConnection() {
        var connection = Connection()
        _ = connection.head("/1")
        _ = connection.readCompleted()
        #expect(
            connection.failed(HTTPParserError.invalidChunkSize)
                == ["cancel request timer", "fail body HTTPParserError"])
        #expect(connection.written() == ["close"], "no second response")
    }

    @Test func aBrokenStreamOfHTTP2IsRefused() {
        var connection = Connection(isHTTP2: true)
        _ = connection.head("/1")
        _ = connection.readCompleted()
        _ = connection.failed(ChannelError.eof)
        #expect(connection.written() == ["close"])
    }

    // MARK: The peer's end

    @Test func aPeerThatHasEndedGetsTheResponsesItAskedFor() {
        var connection = Connection()
        #expect(connection.inputClosed() == ["close"])
        connection = Connection()
        _ = connection.request("/1")
        _ = connection.request("/2")
        _ = connection.head("/3")
        #expect(connection.inputClosed() == ["cancel request timer"])
        #expect(connection.written() == ["idle timer 75", "respond /2"])
        #expect(connection.written() == ["idle timer 75", "close output"])
        connection = Connection()
        _ = connection.request("/1")
        _ = connection.written()
        #expect(connection.inputClosed() == ["cancel request timer", "close output"])
    }

    @Test func aPeerThatEndsWithinABodyGetsOneResponse() {
        var connection = Connection()
        _ = connection.head("/1")
        _ = connection.readCompleted()
        #expect(connection.inputClosed() == ["cancel request timer", "fail body ChannelError"])
        #expect(connection.written() == ["close"])
    }

    @Test func anErrorCountsMoreThanThePeersEnd() {
        var connection = Connection()
        _ = connection.request("/1")
        _ = connection.inputClosed()
        #expect(connection.failed(HTTPParserError.invalidMethod) == ["cancel request timer"])
        #expect(connection.written() == ["idle timer 75", "refuse 400"])
    }

    @Test func anEndOfInputSaysNothingInHTTP2() {
        var connection = Connection(isHTTP2: true)
        _ = connection.request("/1")
        #expect(connection.inputClosed() == [])
        #expect(connection.written() == [])
    }

    @Test func `a reader that has ended its connection of HTTP/2 is gone`() {
        func connection() -> Connection { Connection(isHTTP2: true, offersStreams: true) }
        var streaming = connection()
        _ = streaming.streamRequest()
        streaming.machine.streamOpened()
        #expect(streaming.connectionInputClosed() == ["close"])
        #expect(!streaming.machine.isStreaming)
        var admitting = connection()
        _ = admitting.streamRequest()
        #expect(admitting.connectionInputClosed() == ["close"])
        var silent = connection()
        #expect(silent.connectionInputClosed() == ["close"])
        var asking = connection()
        _ = asking.request("/1")
        #expect(asking.connectionInputClosed() == [], "it may still read the answer")
        #expect(asking.machine.isResponding)
    }

    // MARK: Stopping

    @Test func stoppingWaitsForWhatIsUnderWay() {
        var connection = Connection()
        #expect(connection.quiesce() == ["close"])
        connection = Connection()
        _ = connection.request("/1")
        _ = connection.request("/2")
        #expect(connection.quiesce() == ["cancel pieces"])
        #expect(connection.machine.isQuiescing)
        #expect(connection.written() == ["idle timer 75", "respond /2"])
        #expect(connection.written() == ["idle timer 75", "close"])
        connection = Connection()
        _ = connection.request("/1")
        _ = connection.written()
        #expect(connection.quiesce() == ["cancel pieces", "close"])
    }

    @Test func theRestOfARequestIsStillRespondedTo() {
        var connection = Connection()
        _ = connection.head("/1")
        #expect(connection.quiesce() == ["cancel pieces", "respond /1…"])
        #expect(connection.end() == ["cancel request timer", "end body"])
        #expect(connection.written() == ["idle timer 75", "close"])
    }

    @Test func aChannelThatIsGoneEndsTheBody() {
        var connection = Connection()
        _ = connection.head("/1")
        _ = connection.readCompleted()
        #expect(
            connection.machine.channelClosed().map(\.words) == ["fail body ChannelError"])
        #expect(connection.machine.channelClosed() == [])
        #expect(connection.body("a") == [])
        #expect(connection.written() == [])
        #expect(connection.quiesce() == ["cancel pieces"])
        #expect(connection.idleTimedOut() == [])
        #expect(connection.requestTimedOut() == [])
    }

    // MARK: Timeouts

    @Test func aRequestHasToComeInTime() {
        var connection = Connection()
        #expect(connection.requestTimedOut() == ["close"])
        connection = Connection()
        _ = connection.head("/1")
        _ = connection.readCompleted()
        #expect(connection.requestTimedOut() == ["close"], "a route that reads does not help")
        connection = Connection()
        _ = connection.request("/1")
        #expect(connection.requestTimedOut() == [])
        _ = connection.head("/2")
        #expect(connection.requestTimedOut() == ["close"])
    }

    @Test func anIdleConnectionEnds() {
        var connection = Connection()
        _ = connection.request("/1")
        connection.now = connection.now + .seconds(100)
        #expect(connection.idleTimedOut() == [], "the route may take its time")
        #expect(connection.written() == ["idle timer 175"])
        connection.now = connection.now + .seconds(70)
        #expect(connection.idleTimedOut(isWriting: true) == ["idle timer 245"])
        connection.now = connection.now + .seconds(74)
        #expect(connection.idleTimedOut() == ["idle timer 245"])
        connection.now = connection.now + .seconds(1)
        #expect(connection.idleTimedOut() == ["close"])
    }

    @Test func aHeadIsASignOfLife() {
        var connection = Connection()
        _ = connection.request("/1")
        _ = connection.written()
        connection.now = connection.now + .seconds(60)
        _ = connection.head("/2")
        connection.now = connection.now + .seconds(15)
        #expect(connection.idleTimedOut() == ["idle timer 135"])
    }

    @Test func anHTTP2StreamHasNoIdleTimer() {
        var connection = Connection(isHTTP2: true)
        _ = connection.request("/1")
        #expect(connection.written() == [])
    }

    // MARK: Event streams

    @Test(arguments: [false, true]) func anEventStreamIsAdmittedAndOpened(isHTTP2: Bool) {
        var connection = Connection(isHTTP2: isHTTP2, offersStreams: true)
        #expect(connection.streamRequest() == ["cancel request timer", "admit /stream"])
        #expect(connection.machine.isAdmitting)
        #expect(connection.end() == [])
        #expect(connection.read() == "read")
        connection.machine.streamOpened()
        #expect(connection.machine.isStreaming && !connection.machine.isAdmitting)
        #expect(connection.request("/2") == [], "a reader has nothing to say")
        #expect(connection.quiesce() == ["cancel pieces"], "its shard ends it")
        #expect(connection.inputClosed() == [])
        connection.machine.streamEnded()
        #expect(!connection.machine.isStreaming)
        #expect(connection.machine.abort() == [.close])
    }

    @Test func onlyARequestThatNothingIsBeforeBecomesAStream() {
        var connection = Connection(offersStreams: true)
        _ = connection.request("/1")
        #expect(connection.streamRequest() == [])
        _ = connection.end()
        #expect(connection.written() == ["idle timer 75", "respond /stream"])
        _ = connection.written()
        #expect(connection.streamRequest() == ["admit /stream"])
        connection = Connection(offersStreams: false)
        #expect(connection.streamRequest() == ["cancel request timer"])
        connection = Connection(offersStreams: true)
        #expect(
            connection.head("/1", .POST, ["Accept": "text/event-stream"])
                == ["cancel request timer"])
    }

    @Test func aDeclinedStreamIsForTheRoute() {
        var connection = Connection(offersStreams: true)
        _ = connection.streamRequest()
        _ = connection.end()
        _ = connection.request("/2")
        #expect(
            connection.machine.streamDeclined(now: connection.now).map(\.words) == [
                "cancel request timer", "respond /stream", "cancel request timer",
            ])
        #expect(connection.machine.streamDeclined(now: connection.now) == [])
        #expect(connection.written() == ["idle timer 75", "respond /2"])
    }

    @Test func aDeclinedStreamMayBeDeclinedWithinItsRead() {
        var connection = Connection(offersStreams: true)
        _ = connection.head("/", .GET, ["Accept": "text/event-stream", "Expect": "100-continue"])
        #expect(
            connection.machine.streamDeclined(now: connection.now).map(\.words) == ["continue"])
        #expect(connection.end() == ["cancel request timer", "respond /"])
    }

    /// The same rules apply to bytes that follow a request for a stream.
    @Test func whatIsHeldIsChecked() {
        var connection = Connection(offersStreams: true)
        _ = connection.streamRequest()
        _ = connection.end()
        _ = connection.request("/2", ["Host": "b"])
        let actions = connection.machine.streamDeclined(now: connection.now).map(\.words)
        #expect(actions.contains("respond /stream"))
        #expect(connection.written() == ["idle timer 75", "refuse 400"])
    }

    @Test func fewPartsAreHeld() {
        var connection = Connection(offersStreams: true)
        _ = connection.streamRequest()
        for _ in 0..<15 { #expect(connection.body("x") == []) }
        #expect(connection.body("x") == ["close"])
        #expect(!connection.machine.isAdmitting)
    }

    @Test func whoLeavesDuringItsAdmissionGetsNoStream() {
        var connection = Connection(offersStreams: true)
        _ = connection.streamRequest()
        #expect(connection.inputClosed() == ["close"])
        #expect(!connection.machine.isAdmitting)
        connection = Connection(offersStreams: true)
        _ = connection.streamRequest()
        #expect(connection.failed(HTTPParserError.invalidMethod) == ["refuse 400"])
        #expect(!connection.machine.isAdmitting)
        connection = Connection(isHTTP2: true, offersStreams: true)
        _ = connection.streamRequest()
        #expect(connection.inputClosed() == [])
        #expect(connection.machine.isAdmitting)
    }

    @Test func stoppingDuringAnAdmissionEndsBehindTheRoutesResponse() {
        var connection = Connection(offersStreams: true)
        _ = connection.streamRequest()
        _ = connection.end()
        #expect(connection.quiesce() == ["cancel pieces"])
        _ = connection.machine.streamDeclined(now: connection.now)
        #expect(connection.written() == ["idle timer 75", "close"])
    }
}

extension HTTPConnectionMachine.Action {
    /// The action in a few words.
    var words: String {
        switch self {
        case .admitStream(let request): "admit \(request.path)"
        case .sendContinue: "continue"
        case .respond(let request, let isWhole):
            "respond \(request.head.uri)" + (request.body.map { " " + String(buffer: $0) } ?? "")
                + (isWhole ? "" : "…")
        case .forwardBody(let bytes): "forward \(String(buffer: bytes))"
        case .endBody(nil): "end body"
        case .endBody(let failure?): "fail body \(type(of: failure.error))"
        case .cancelPieces: "cancel pieces"
        case .refuse(let problem, let omitsBody):
            "refuse \(problem.status)\(omitsBody ? " without a body" : "")"
        case .close: "close"
        case .closeOutput: "close output"
        case .read: "read"
        case .startRequestTimer: "request timer"
        case .cancelRequestTimer: "cancel request timer"
        case .startIdleTimer(let due): "idle timer \(due.uptimeNanoseconds / 1_000_000_000)"
        }
    }
}
