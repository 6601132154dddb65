import Foundation
import Testing
import WidgetModel

@testable import TimelineClient

@Suite struct EntrySequenceTests {
    private func sequence(_ seconds: [Double], spacing: TimeInterval = 300) -> EntrySequence {
        EntrySequence(dates: seconds.map(date), spacing: spacing)
    }

    @Test func aTimelineWithoutEntriesShowsNothingAndNeverChanges() {
        let sequence = sequence([])
        #expect(sequence.index(at: date(0)) == nil)
        #expect(sequence.nextChange(after: .distantPast) == nil)
    }

    @Test func nothingIsShownBeforeItsDate() {
        let sequence = sequence([100])
        #expect(sequence.index(at: date(99.5)) == nil)
        #expect(sequence.nextChange(after: date(99.5)) == date(100))
        #expect(sequence.index(at: date(100)) == 0)
        #expect(sequence.nextChange(after: date(100)) == nil)
    }

    @Test func entriesFarEnoughApartAreShownAtTheirDatesInAnyOrder() {
        let sequence = sequence([900, 0, 300])
        #expect(sequence.index(at: date(299)) == 1)
        #expect(sequence.nextChange(after: date(0)) == date(300))
        #expect(sequence.index(at: date(300)) == 2)
        #expect(sequence.index(at: date(900)) == 0)
    }

    @Test func anEntryThatBeginsTooSoonIsShownWhenTheSpacingIsOver() {
        let sequence = sequence([0, 10])
        #expect(sequence.index(at: date(299)) == 0)
        #expect(sequence.nextChange(after: date(10)) == date(300))
        #expect(sequence.index(at: date(300)) == 1)
    }

    @Test func aLaterEntryThatHasBegunByThenIsShownInItsPlace() {
        let sequence = sequence([0, 10, 300, 301])
        #expect(sequence.index(at: date(300)) == 2)
        #expect(sequence.nextChange(after: date(300)) == date(600))
        #expect(sequence.index(at: date(600)) == 3)
    }

    @Test func ofEntriesWithOneDateTheLastOfTheTimelineIsShown() {
        let sequence = sequence([5, 5, 5])
        #expect(sequence.index(at: date(5)) == 2)
        #expect(sequence.nextChange(after: date(5)) == nil)
    }

    @Test func withoutSpacingEveryDateIsAChange() {
        let sequence = sequence([2, 1, 3], spacing: 0)
        #expect((1...3).map { sequence.index(at: date(Double($0))) } == [1, 0, 2])
        #expect(self.sequence([2, 1, 3], spacing: -4) == sequence)
        #expect(self.sequence([2, 1, 3], spacing: .nan) == sequence)
    }

    @Test func datesAndSpacingsThatAreNotFiniteDoNoHarm() {
        let sequence = sequence([.nan, 1, .infinity, -.infinity, 2], spacing: .infinity)
        #expect(sequence.index(at: date(1)) == 1)
        #expect(sequence.nextChange(after: date(1)) == date(1 + 366 * 86_400))
        #expect(sequence.index(at: .distantFuture) == 4)
        #expect(sequence.nextChange(after: .distantFuture) == nil)
    }

    @Test func aClockThatJumpsShowsWhatItWouldHaveShown() {
        let sequence = sequence([0, 1000, 2000])
        #expect(sequence.index(at: date(2500)) == 2)
        #expect(sequence.index(at: date(1500)) == 1)
        #expect(sequence.nextChange(after: date(1500)) == date(2000))
    }

    @Test func thousandsOfEntriesEndWithTheLast() {
        let sequence = sequence((0..<50_000).map { Double($0) }.shuffled())
        var changes = 0
        var moment = Date.distantPast
        while let next = sequence.nextChange(after: moment) {
            moment = next
            changes += 1
        }
        #expect(changes == 168)
        #expect(moment == date(167 * 300))
    }

    @Test func aTimelineIsTakenAsItIs() {
        struct Entry: TimelineEntry { let date: Date }
        let timeline = AnyTimeline(
            Timeline(entries: [Entry(date: date(7)), Entry(date: date(3))], policy: .atEnd))
        #expect(EntrySequence(timeline).index(at: date(3)) == 1)
        #expect(EntrySequence(timeline).nextChange(after: date(3)) == date(303))
    }

    /// The model looks at every second: it shows the latest entry that has begun, as soon as the
    /// shown one has been visible for the spacing.
    @Test(arguments: 0..<400)
    func itShowsWhatWatchingTheClockWouldShow(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        let seconds = (0..<Int.random(in: 0...12, using: &generator)).map { _ in
            Int.random(in: 0...60, using: &generator)
        }
        let spacing = Int.random(in: 0...20, using: &generator)
        let sequence = sequence(seconds.map(Double.init), spacing: Double(spacing))
        let order = seconds.indices.sorted { (seconds[$0], $0) < (seconds[$1], $1) }
        var shown: Int?
        var since = 0
        var changes: [Int] = []
        for now in -1...150 {
            let latest = order.last { seconds[$0] <= now }
            if latest != shown, shown == nil || now - since >= spacing {
                shown = latest
                since = now
                changes.append(now)
            }
            #expect(sequence.index(at: date(Double(now))) == shown, "at \(now)")
        }
        #expect(shown == order.last)
        for now in -1...150 {
            let next = changes.first { $0 > now }.map { date(Double($0)) }
            #expect(sequence.nextChange(after: date(Double(now))) == next, "after \(now)")
        }
    }

    /// A timeline shows the entry its sequence selects, also before the first entry and among equal
    /// dates.
    @Test func aTimelineShowsWhatItsSequenceSays() {
        struct Numbered: TimelineEntry {
            var date: Date
            var number: Int
        }
        let timeline = AnyTimeline(
            Timeline(
                entries: [(600, 0), (0, 1), (600, 2)].map {
                    Numbered(date: date($0.0), number: $0.1)
                }, policy: .never))
        func shown(_ second: Double) -> Int? {
            (timeline.entry(at: date(second)) as? Numbered)?.number
        }
        #expect(shown(-1) == nil)
        #expect(shown(0) == 1)
        #expect(shown(599) == 1)
        #expect(shown(600) == 2)
    }
}
