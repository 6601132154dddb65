import Testing

@testable import TimelineGatewayClient

@Suite struct ServerTimeTests {
    @Test func timeGoesOnFromTheLastAnswer() {
        var time = ServerTime()
        #expect(time.seconds(now: .zero, fallback: 5) == 5)
        time.note("Thu, 01 Jan 1970 00:01:40 GMT", now: .seconds(10))
        time.note("nonsense", now: .seconds(11))
        #expect(time.seconds(now: .seconds(30), fallback: 5) == 120)
    }
}
