import GatewayTestSupport
import Testing

@Suite struct MetricsPageTests {
    private static let page = MetricsPage(
        """
        HTTP/1.1 200 OK\r
        # TYPE turns counter
        turns{thread="a",le="0.5"} 3
        turns{le="+Inf", thread="b"} 4.0
        turns_total{thread="a"} 9
        streams 3
        odd
        later 7 x
        """)

    @Test func samplesAreReadByNameAndLabels() {
        #expect(Self.page["streams"] == 3)
        #expect(Self.page[#"turns_total{thread="a"}"#] == 9)
        #expect(Self.page["turns"] == nil && Self.page["odd"] == nil && Self.page["later 7"] == nil)
    }

    @Test func labelsAreRead() {
        let turns = Self.page.labelled("turns").sorted { $0.value < $1.value }
        #expect(
            turns.map(\.labels) == [["thread": "a", "le": "0.5"], ["le": "+Inf", "thread": "b"]])
        #expect(turns.map(\.value) == [3, 4])
        #expect(Self.page.labelled("streams").isEmpty)
    }
}
