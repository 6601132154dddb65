import GatewayTestSupport
import Testing
import WidgetModel

/// SIGTERM ends everything in order: streams with a reconnection time, the process with status
/// 0.
@Suite(.alone) struct TerminationTests {
    @Test(arguments: [TestHTTPVersion.one, .two])
    func streamsGetARetryAndAnOrderlyEnd(version: TestHTTPVersion) throws {
        let gateway = try GatewayProcess()
        let game = try GameFixture(gateway)
        let streams = try (0..<20).map { number in
            game.stream(try game.client("client-\(number)", ["panda"]), version: version)
        }
        for stream in streams { try #require(stream.head()?.status == 200) }
        let retry = streams[0].retry
        #expect(gateway.terminate() == .status(0), "\(gateway.standardErrorTail)")
        var retries: Set<Int?> = []
        for stream in streams {
            #expect(stream.waitForEnd())
            _ = stream.takeAll()
            guard case .ended(let reason) = stream.next() else {
                Issue.record("a stream goes on without a daemon")
                continue
            }
            #expect(reason == nil, "a stream was cut: \(reason ?? "")")
            retries.insert(stream.retry)
        }
        #expect(!retries.contains(nil))
        #expect(
            retries.count > 1, "everybody comes back at once: \(retries), before: \(retry ?? 0)"
        )
    }

    @Test func idleConnectionsDoNotHoldItUp() throws {
        let gateway = try GatewayProcess()
        let game = try GameFixture(gateway)
        let idle = [gateway.http(.one), gateway.http(.two)]
        for http in idle {
            let answer = try http.request("GET", "/.well-known/jwks.json")
            #expect(answer.status == 200)
        }
        let stream = game.stream(try game.client("client", ["panda"]), version: .two)
        try #require(stream.head()?.status == 200)
        #expect(gateway.terminate() == .status(0), "\(gateway.standardErrorTail)")
        for http in idle {
            #expect(throws: TestHTTPError.self) {
                try http.request("GET", "/.well-known/jwks.json")
            }
        }
        #expect(stream.waitForEnd())
    }

    @Test func aReaderThatDoesNotReadDoesNotHoldItUp() throws {
        let gateway = try GatewayProcess()
        let game = try GameFixture(gateway)
        let stream = game.stream(try game.client("client", ["panda"]), receiveBufferBytes: 4_096)
        try #require(stream.head()?.status == 200)
        stream.stopReading()
        let http = gateway.http()
        for round in 0..<10 {
            try game.change(http, Array(repeating: "panda", count: 500), run: "\(round)")
        }
        #expect(gateway.terminate() == .status(0), "\(gateway.standardErrorTail)")
        stream.close()
    }

    @Test func whatWasAnsweredBeforeIsThereAfter() throws {
        let gateway = try GatewayProcess()
        let game = try GameFixture(gateway)
        let client = try game.client("client", ["panda"])
        try game.change(gateway.http(), ["panda"], run: "last")
        #expect(gateway.terminate() == .status(0))
        try gateway.start()
        #expect(try game.poll(client, since: client.cursor).stale == ["detail character=panda"])
    }
}
