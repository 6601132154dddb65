import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct ReportedRebuildsTests {
    /// A client that is notified of changes, each accepted at ten times its sequence.
    private struct Client {
        var told: [UInt64: [RecentChanges.Hit]] = [:]
        var reported = ReportedRebuilds()
        var acknowledged: UInt64 = 1
        var copies = 1

        /// Notifies the client of a change to the timeline with this number, now or soon.
        mutating func tell(_ sequence: UInt64, _ timeline: UInt64 = 1) {
            told[timeline, default: []].append(
                .init(sequence: sequence, acceptedAt: Int64(sequence) * 10))
        }

        mutating func acknowledge(
            _ cursor: UInt64, _ rebuilt: [UInt64] = [], at now: Int64 = 0
        ) -> [Int64] {
            let claims = Dictionary(rebuilt.map { ($0, 1) }, uniquingKeysWith: +)
                .map { timeline, times in
                    ReportedRebuilds.TimelineReport(
                        name: TimelineID("k", ["a": .single("\(timeline)")]),
                        told: (told[timeline] ?? []).filter { $0.sequence > acknowledged },
                        copies: copies, times: times)
                }
            defer { acknowledged = max(acknowledged, cursor) }
            return reported.acknowledged(
                upTo: cursor, before: acknowledged, claims, now: now
            ).map(\.milliseconds).sorted()
        }
    }

    @Test func `a report whose cursor covers the change counts at once, and once`() {
        var client = Client()
        client.tell(10)
        #expect(client.acknowledge(10, [1], at: 150) == [50])
        #expect(client.acknowledge(10, [1], at: 200) == [] && client.reported.isEmpty)
        #expect(client.acknowledge(20, [1], at: 300) == [], "nothing asked for it")
        #expect(client.reported.isEmpty)
    }

    @Test func `a report below its change counts when a cursor covers that, from its own time`() {
        var client = Client()
        client.tell(10)
        #expect(client.acknowledge(6, [1], at: 150) == [])
        #expect(client.acknowledge(9) == [])
        #expect(client.acknowledge(12) == [50])
        #expect(client.reported.isEmpty)
    }

    @Test func `reports that one cursor covers have a change each`() {
        var client = Client()
        for number in UInt64(1)...3 {
            client.tell(10 * number)
            #expect(client.acknowledge(6, [1], at: Int64(110 * number)) == [])
        }
        #expect(client.acknowledge(20) == [10, 20])
        #expect(client.acknowledge(30) == [30])
        #expect(client.reported.isEmpty)
    }

    @Test func `a report leaves the later change to the later report`() {
        var client = Client()
        client.tell(10)
        // The notification is in flight when the report for the first change comes.
        client.tell(11)
        #expect(client.acknowledge(6, [1], at: 150) == [])
        #expect(client.acknowledge(6, [1], at: 180) == [])
        #expect(client.acknowledge(11) == [50, 70])
    }

    @Test func `a report is known for what it was for when later ones have come`() {
        var client = Client()
        client.tell(10)
        client.tell(11)
        #expect(client.acknowledge(6, [1], at: 150) == [])
        client.tell(12)
        #expect(client.acknowledge(6, [1], at: 180) == [])
        #expect(client.acknowledge(11) == [40])
        #expect(client.acknowledge(11, [1], at: 190) == [70], "the second was for 11, not for 12")
        #expect(client.acknowledge(12) == [70])
        #expect(client.reported.isEmpty)
    }

    @Test func `a rebuild that no change asked for is not counted`() {
        var client = Client()
        #expect(client.acknowledge(6, [1], at: 50) == [] && client.reported.isEmpty)
        client.tell(10)
        #expect(client.acknowledge(6, [1], at: 110) == [])
        #expect(client.acknowledge(6, [1], at: 150) == [])
        #expect(client.acknowledge(10) == [50], "the later of two for one change")
        #expect(client.acknowledge(10, [2]) == [], "another timeline")
        #expect(client.reported.isEmpty)
    }

    /// A report comes twice when an answer is lost. It does not cost another report its change.
    @Test func `a report that comes twice counts once`() {
        var client = Client()
        client.tell(10)
        #expect(client.acknowledge(6, [1], at: 150) == [])
        #expect(client.acknowledge(6, [1], at: 160) == [])
        client.tell(20)
        #expect(client.acknowledge(16, [1], at: 250) == [60])
        #expect(client.acknowledge(16, [1], at: 260) == [])
        #expect(client.acknowledge(21) == [60])
        #expect(client.reported.isEmpty)
    }

    /// The client was notified of more changes at once than are kept.
    @Test func `a report keeps its change while the client is told of many others`() {
        var client = Client()
        client.tell(10)
        #expect(client.acknowledge(6, [1], at: 150) == [])
        let last = 20 + 2 * UInt64(ReportedRebuilds.reportsMax)
        for sequence in 20...last { client.tell(sequence) }
        #expect(client.acknowledge(6, [1], at: Int64(last) * 10 + 70) == [])
        #expect(client.acknowledge(last) == [50, 70])
        #expect(client.reported.isEmpty)
    }

    @Test func `timelines that differ in their family alone count each`() {
        var client = Client()
        client.copies = 2
        client.tell(10)
        #expect(client.acknowledge(6, [1, 1], at: 150) == [])
        #expect(client.acknowledge(10) == [50, 50])
        client.tell(20)
        #expect(client.acknowledge(20, [1, 1, 1], at: 250) == [50, 50], "not more than there are")
        client.tell(30)
        client.tell(31)
        #expect(client.acknowledge(20, [1], at: 350) == [])
        #expect(client.acknowledge(20, [1, 1], at: 370) == [])
        #expect(client.acknowledge(31) == [50, 60, 60])
        #expect(client.reported.isEmpty)
    }

    @Test func `a cursor to resume from confirms reports, and a repeated one is not another`() {
        var client = Client()
        client.tell(10)
        #expect(client.acknowledge(6, [1], at: 150) == [])
        client.tell(12, 2)
        // The next acknowledgement was lost, or the answer to it.
        let confirmed = client.reported.resumed(from: 12)
        #expect(confirmed.map(\.kind) == ["k"] && confirmed.map(\.change.sequence) == [10])
        #expect(confirmed.map(\.milliseconds) == [50])
        #expect(client.reported.resumed(from: 12) == [])
        #expect(client.acknowledge(12, [1, 2], at: 170) == [50], "the first is counted already")
        #expect(client.reported.isEmpty)
    }

    /// There is always another report that waits for its cursor.
    @Test func `a timeline that is rebuilt without pause counts all the same`() {
        var client = Client()
        var counted = 0
        let count = UInt64(3 * ReportedRebuilds.reportsMax)
        for number in 1...count {
            client.tell(10 * number)
            counted += client.acknowledge(10 * (number - 1), [1], at: Int64(101 * number)).count
        }
        #expect(counted == Int(count) - 1)
        #expect(client.acknowledge(10 * count) == [Int64(count)])
        #expect(client.reported.isEmpty)
    }

    @Test func `more reports than are kept cost the oldest`() {
        var client = Client()
        let count = UInt64(ReportedRebuilds.reportsMax) + 3
        for number in 1...count {
            client.tell(10 * number)
            #expect(client.acknowledge(6, [1], at: Int64(100 * number + number)) == [])
        }
        #expect(client.acknowledge(10 * count) == Array(Int64(4)...Int64(count)))
    }
}
