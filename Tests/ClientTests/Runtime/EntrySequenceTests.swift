import Foundation
import Testing

@testable import TimelineRuntime
@testable import WidgetViews

@Suite struct EntrySequenceTests {
    @Test(
        arguments: [
            // Nothing is shown without entries, nor before their dates.
            ([], 0, nil, nil), ([100], 99.5, nil, 100), ([100], 100, 0, nil),
            // The entries may be in any order.
            ([900, 0, 300], 299, 1, 300), ([900, 0, 300], 300, 2, 900),
            ([900, 0, 300], 900, 0, nil),
            // Five minutes are advice: no entry is left out or late.
            ([0, 10, 300, 301], 9, 0, 10), ([0, 10, 300, 301], 10, 1, 300),
            ([0, 10, 300, 301], 301, 3, nil),
            // Of entries with one date the last of the timeline is shown.
            ([5, 5, 5], 5, 2, nil),
            // Dates that are not finite do no harm.
            ([.nan, 1, .infinity, -.infinity, 2], 1, 1, 2),
            ([.nan, 1, .infinity, -.infinity, 2], 1e9, 4, nil),
        ] as [([Double], Double, Int?, Double?)])
    func theLatestEntryThatHasBegunIsShown(
        dates: [Double], now: Double, shown: Int?, next: Double?
    ) {
        let sequence = EntrySequence(dates: dates.map(date))
        #expect(sequence.index(at: date(now)) == shown)
        #expect(sequence.nextChange(after: date(now)) == next.map(date))
    }

    @Test func theShortestSpacingIsThatOfTwoEntries() {
        #expect(EntrySequence(dates: [0, 10, 300, 301].map(date)).shortestSpacing == 1)
        #expect(EntrySequence(dates: [date(5)]).shortestSpacing == nil)
    }
}
