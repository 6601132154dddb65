import NIOCore
import NIOHTTP1
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayServer

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

        mutating func readCompleted() -> [String] { machine.readCompleted(now: now).map(\.words) }

        mutating func bodyFilled() { machine.bodyFilled(now: now) }

        mutating func bodyWanted() -> [String] { machine.bodyWanted(now: now).map(\.words) }

        mutating func read() -> String { machine.readRequested() ? "read" : "held" }

        mutating func written() -> [String] { machine.responseWritten(now: now).map(\.words) }

        mutating func failed(_ error: any Error) -> [String] { machine.failed(error).map(\.words) }

        mutating func inputClosed() -> [String] { machine.inputClosed().map(\.words) }

        mutating func connectionInputClosed() -> [String] {
            machine.connectionInputClosed().map(\.words)
        }

        mutating func quiesce() -> [String] { machine.quiesce().map(\.words) }

        mutating func requestTimedOut(_ bodiesDue: NIODeadline = .distantPast) -> [String] {
            machine.requestTimedOut(now: now, bodiesDue: bodiesDue).map(\.words)
        }

        /// Lets time pass, and fires the request timer at its end.
        mutating func wait(
            _ time: TimeAmount, bodiesDue: NIODeadline = .distantPast
        ) -> [String] {
            now = now + time
            return requestTimedOut(bodiesDue)
        }

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

    /// A long rest, or one of unknown length, is not waited for.
    @Test(arguments: [false, true], [nil, "65537"] as [String?])
    func aResponseMayComeBeforeTheEndOfItsBody(isHTTP2: Bool, length: String?) {
        var connection = Connection(isHTTP2: isHTTP2)
        let fields: HTTPHeaders = length.map { ["Content-Length": $0] } ?? [:]
        _ = connection.head("/1", fields)
        _ = connection.readCompleted()
        connection.bodyFilled()
        #expect(connection.read() == "held")
        #expect(connection.machine.responseBegins()?.isLast == true, "and it says so")
        #expect(
            connection.written()
                == (isHTTP2
                    ? ["end body", "request timer", "reset stream", "read"]
                    : ["end body", "linger"]))
        #expect(connection.body("x") == [])
        #expect(connection.readCompleted() == (isHTTP2 ? ["request timer"] : []))
        #expect(connection.end() == (isHTTP2 ? ["cancel request timer"] : []))
    }

    /// A client that sends head and body one after the other may use its connection again.
    @Test(arguments: [false, true])
    func aShortRestIsReadBehindTheResponse(isHTTP2: Bool) {
        var connection = Connection(isHTTP2: isHTTP2)
        _ = connection.head("/1", ["Content-Length": "65538"])
        _ = connection.body("ab")
        _ = connection.readCompleted()
        #expect(connection.machine.responseBegins()?.isLast == false)
        #expect(connection.written() == ["end body"] + (isHTTP2 ? [] : ["idle timer 75"]))
        #expect(connection.body("x") == [])
        #expect(connection.readCompleted() == ["request timer"])
        #expect(connection.end() == ["cancel request timer"])
        guard !isHTTP2 else { return }
        #expect(connection.request("/2") == ["cancel request timer", "respond /2"])
        #expect(connection.machine.responseBegins()?.isLast == false)
    }

    @Test func aShortRestThatDoesNotComeEndsTheConnection() {
        var connection = Connection()
        _ = connection.head("/1", ["Content-Length": "2"])
        _ = connection.readCompleted()
        _ = connection.written()
        #expect(connection.wait(.seconds(29)) == ["request timer"])
        #expect(connection.wait(.seconds(1)) == ["close"])
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

    @Test func whatIsNotHTTPIsRefused() {
        var connection = Connection()
        #expect(connection.failed(ChannelError.eof) == [], "its channel closes by itself")
        #expect(connection.failed(HTTPParserError.headerOverflow) == ["refuse 431"])
        connection = Connection()
        _ = connection.request("/1")
        #expect(connection.failed(HTTPParserError.invalidMethod) == ["cancel request timer"])
        #expect(connection.failed(ChannelError.eof) == [], "the first error counts")
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
        #expect(connection.machine.responseBegins()?.isLast == true)
        #expect(connection.written() == ["linger"], "no second response")
    }

    @Test func aBrokenStreamOfHTTP2IsRefused() {
        var connection = Connection(isHTTP2: true)
        _ = connection.head("/1")
        _ = connection.readCompleted()
        _ = connection.failed(ChannelError.eof)
        #expect(connection.written() == ["request timer", "reset stream"])
    }

    // MARK: The peer's end

    @Test func aPeerThatEndsWithinABodyGetsOneResponse() {
        var connection = Connection()
        _ = connection.head("/1")
        _ = connection.readCompleted()
        #expect(connection.inputClosed() == ["cancel request timer", "fail body ChannelError"])
        #expect(connection.written() == ["linger"])
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

    @Test func `a request whose rest cannot come ends with its connection of HTTP/2`() {
        func sending(_ body: String) -> Connection {
            var connection = Connection(isHTTP2: true)
            _ = connection.head("/1") + connection.body(body)
            return connection
        }
        var full = sending("a")
        _ = full.readCompleted()
        full.bodyFilled()
        #expect(full.read() == "held")
        #expect(full.connectionInputClosed() == [], "its end may have come already")
        #expect(full.bodyWanted() == ["read"])
        #expect(full.end() == ["cancel request timer", "end body"])
        var forwarding = sending("a")
        _ = forwarding.readCompleted()
        #expect(
            forwarding.connectionInputClosed()
                == ["cancel request timer", "fail body ChannelError"])
        #expect(forwarding.written() == ["request timer", "reset stream"])
        var answered = sending("a")
        _ = answered.readCompleted() + answered.written()
        #expect(answered.connectionInputClosed() == ["reset stream"])
    }

    // MARK: Stopping

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
        _ = connection.request("/1")
        #expect(connection.requestTimedOut() == [])
    }

    /// 244 KB of a registration by 64 kbit/s.
    @Test(arguments: [false, true]) func aBodyMayBeSlow(isHTTP2: Bool) {
        var connection = Connection(isHTTP2: isHTTP2)
        _ = connection.head("/1", ["Content-Length": "249856"])
        #expect(connection.readCompleted() == ["request timer", "respond /1…"])
        let second = String(repeating: "x", count: 8_000)
        for number in 1..<32 {
            _ = connection.body(second)
            #expect(connection.wait(.seconds(1)) == ["request timer"], "after \(number) s")
        }
        #expect(connection.end() == ["cancel request timer", "end body"])
    }

    /// A pause uses up the time that bytes earn again.
    @Test func aBodyMayPause() {
        var connection = Connection()
        _ = connection.head("/1")
        _ = connection.readCompleted()
        for _ in 0..<3 {
            #expect(connection.wait(.seconds(29)) == ["request timer"])
            _ = connection.body(String(repeating: "x", count: 29 * 4_096))
        }
    }

    /// A client that sends a byte now and then gets its 408 and occupies nothing more.
    @Test(arguments: [false, true], [1, 3_000])
    func aBodyThatIsTooSlowIsOver(isHTTP2: Bool, bytesPerSecond: Int) {
        var connection = Connection(isHTTP2: isHTTP2)
        _ = connection.head("/1", ["Content-Length": "8000000"])
        _ = connection.readCompleted()
        let second = String(repeating: "x", count: bytesPerSecond)
        var (actions, seconds) = (["request timer"], 0)
        while actions == ["request timer"], seconds < 1_000 {
            _ = connection.body(second)
            actions = connection.wait(.seconds(1))
            seconds += 1
        }
        #expect(actions == ["fail body ProblemDetails"])
        // The nearer it is to 4 KiB a second, the longer its 30 seconds last.
        #expect((bytesPerSecond == 1 ? 30...31 : 100...120).contains(seconds), "\(seconds)")
        #expect(connection.machine.responseBegins()?.isLast == true)
        #expect(
            connection.written() == (isHTTP2 ? ["request timer", "reset stream"] : ["linger"]))
        #expect(connection.body("x") == [])
    }

    /// The streams of a connection share what the network carries, and one waits for its turn.
    @Test(arguments: [(5_000, 120...130), (3_000, 30...31)])
    func aBodyWaitsWhileOthersOfItsConnectionCome(bytesPerSecond: Int, end: ClosedRange<Int>) {
        let progress = ConnectionProgress()
        var waiting = Connection(isHTTP2: true)
        _ = waiting.head("/1")
        _ = waiting.readCompleted()
        var (actions, seconds) = (["request timer"], 0)
        while actions == ["request timer"], seconds < 1_000 {
            if seconds < 101 {
                progress.received(bytesPerSecond, now: waiting.now, ConnectionSettings())
            }
            actions = waiting.wait(.seconds(1), bodiesDue: progress.bodiesDue)
            seconds += 1
        }
        #expect(actions == ["fail body ProblemDetails"])
        #expect(end.contains(seconds), "\(seconds)")
    }

    /// However fast it is: the bytes that it holds are needed by others.
    @Test func aBodyIsOverAfterFiveMinutes() {
        var connection = Connection()
        _ = connection.head("/1")
        _ = connection.readCompleted()
        for _ in 0..<299 {
            _ = connection.body(String(repeating: "x", count: 10_000))
            #expect(connection.wait(.seconds(1)) == ["request timer"])
        }
        #expect(connection.wait(.seconds(1)) == ["fail body ProblemDetails"])
    }

    /// While the gateway does not read, as for the budget of bytes, the peer cannot send.
    @Test func timeInWhichNothingIsReadDoesNotCount() {
        var connection = Connection()
        _ = connection.head("/1")
        _ = connection.readCompleted()
        #expect(connection.wait(.seconds(20)) == ["request timer"])
        connection.bodyFilled()
        #expect(connection.wait(.seconds(1_000)) == ["request timer"])
        _ = connection.bodyWanted()
        #expect(connection.wait(.seconds(9)) == ["request timer"])
        #expect(connection.wait(.seconds(1)) == ["fail body ProblemDetails"])
        // Nor does the response to an earlier request.
        connection = Connection()
        _ = connection.request("/1")
        _ = connection.head("/2")
        #expect(connection.readCompleted() == ["request timer"])
        #expect(connection.wait(.seconds(1_000)) == ["request timer"])
        #expect(connection.written() == ["idle timer 1075", "respond /2…"])
        #expect(connection.wait(.seconds(29)) == ["request timer"])
        #expect(connection.wait(.seconds(1)) == ["fail body ProblemDetails"])
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
        case .linger: "linger"
        case .resetStream: "reset stream"
        case .closeOutput: "close output"
        case .read: "read"
        case .startRequestTimer: "request timer"
        case .cancelRequestTimer: "cancel request timer"
        case .startIdleTimer(let due): "idle timer \(due.uptimeNanoseconds / 1_000_000_000)"
        }
    }
}
