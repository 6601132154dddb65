import Testing
import WidgetModel

@Suite struct HTTPDateTests {
    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199),
        ("Sat, 21 Nov 2026 06:32:54 GMT", 1_795_242_774),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
        ("Saturday, 21-Nov-26 06:32:54 GMT", 1_795_242_774),
        ("Thursday, 01-Jan-70 00:00:00 GMT", 0),
        ("Sun Nov  6 08:49:37 1994", 784_111_777),
        ("Sat Nov 21 06:32:54 2026", 1_795_242_774),
    ])
    func aDateIsRead(text: String, seconds: Int64) {
        #expect(HTTPDate.seconds(text) == seconds)
    }

    @Test(arguments: [
        "", "now", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 32 Nov 1994 08:49:37 GMT",
        "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 99999999999999999999 08:49:37 GMT", "Sun, 06 Nov 1994 :: GMT",
        "Sunday, 06-Nov-1994 08:49:37 GMT", "Sunday, 06-Nov 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 UTC", "Sun Nov 6 08:49:37 94", "Sun Nov 6 1994 08:49:37",
        "Sun Nov -6 08:49:37 1994",
    ])
    func whatIsNoDateIsIgnored(text: String) {
        #expect(HTTPDate.seconds(text) == nil)
    }
}
