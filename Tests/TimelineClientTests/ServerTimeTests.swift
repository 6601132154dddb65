import Testing

@testable import TimelineClient

@Suite struct ServerTimeTests {
    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199),
        ("Sat, 21 Nov 2026 06:32:54 GMT", 1_795_242_774),
    ])
    func aDateIsRead(text: String, seconds: Int64) {
        #expect(HTTPDate.seconds(text) == seconds)
    }

    @Test(arguments: [
        "", "now", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 32 Nov 1994 08:49:37 GMT",
        "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 99999999999999999999 08:49:37 GMT", "Sun, 06 Nov 1994 :: GMT",
    ])
    func whatIsNoDateIsIgnored(text: String) {
        #expect(HTTPDate.seconds(text) == nil)
    }

    @Test func timeGoesOnFromTheLastAnswer() {
        var time = ServerTime()
        #expect(time.seconds(now: .zero, fallback: 5) == 5)
        time.note("Thu, 01 Jan 1970 00:01:40 GMT", now: .seconds(10))
        time.note("nonsense", now: .seconds(11))
        #expect(time.seconds(now: .seconds(30), fallback: 5) == 120)
    }
}
