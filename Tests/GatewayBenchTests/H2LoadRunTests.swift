import Testing

@testable import gateway_bench

@Suite struct H2LoadRunTests {
    private static let output = """
        starting benchmark...
        TLS Protocol: TLSv1.3
        progress: 100% done

        finished in 1.25s, 16000.00 req/s, 1.10MB/s
        requests: 20000 total, 20000 started, 20000 done, 19999 succeeded, 1 failed, 0 errored
        status codes: 19999 2xx, 0 3xx, 1 4xx, 0 5xx
        traffic: 1.38MB (1449131) total, 500.12KB (512123) headers (space savings 90.01%), 0B (0) data
        """

    @Test func figuresAreRead() {
        #expect(H2LoadRun.seconds(Self.output) == 1.25)
        #expect(H2LoadRun.accepted(Self.output) == 19_999)
    }

    @Test(arguments: [
        ("finished in 12.5ms, 3 req/s", 0.0125), ("finished in 500us, 1 req/s", 5e-4),
    ])
    func shortTimesAreRead(output: String, seconds: Double) throws {
        let read = try #require(H2LoadRun.seconds(output))
        #expect(abs(read - seconds) < 1e-12)
    }

    @Test(arguments: ["", "finished in", "finished in ms,", "status codes: none"])
    func whatIsNoFigureIsNone(output: String) {
        #expect(H2LoadRun.seconds(output) == nil && H2LoadRun.accepted(output) == nil)
    }
}
