/// The rebuilds that one client reported, from each report until a cursor of the client confirms
/// the change it was for.
///
/// That may be much later, for a client's cursor stays below the oldest change in any collapse
/// window, also while it is told of others and rebuilds for them; and the cursor that covers them
/// at last comes with no report. A report does not say which change it is for, so each is taken for
/// the latest that the client was told of before the report came, and before what the next report
/// of the same timeline is for: a report may have been on its way when the next notification was.
/// That gives every report its change whose rebuild was for one; what remains without was for
/// something else, as for its policy, or was sent again because its answer was lost. That a report
/// says what the last one said is no sign of either: two rebuilds often do. Where the client was
/// told of more changes than it rebuilt for, such a report may count for one of them.
///
/// Bounded: so many reports of a timeline wait, ``reportsMax``, and only of timelines that are
/// registered.
package struct ReportedRebuilds: Sendable {
    /// Reports of one timeline that wait for a cursor, and changes they may be for; of more, the
    /// oldest are not counted. It is one a minute through the longest collapse window, an hour.
    package static let reportsMax = 64

    /// What a client says of one timeline.
    package struct Claim: Sendable {
        /// Which.
        package let name: TimelineName
        /// The changes that the client was told of, in their order: ``RecentChanges/told(_:after:)``.
        package let told: [RecentChanges.Hit]
        /// How many timelines of this name are registered: they differ in their family alone, which
        /// reports do not name.
        package let copies: Int
        /// How often it is reported at once; each of the timelines counts once.
        package let times: Int

        /// A claim.
        package init(name: TimelineName, told: [RecentChanges.Hit], copies: Int, times: Int) {
            self.name = name
            self.told = told
            self.copies = copies
            self.times = times
        }
    }

    /// A rebuild that a cursor confirmed.
    package struct Confirmation: Sendable, Equatable {
        /// The kind of the timeline that was rebuilt.
        package let kind: String
        /// The change that it is taken to be for.
        package let change: RecentChanges.Hit
        /// How long it took from the change's acceptance to the report, in milliseconds.
        package let milliseconds: Int64
    }

    fileprivate struct Report {
        /// What it is taken to be for.
        var change: RecentChanges.Hit
        /// When it came, in milliseconds since 1970.
        let at: Int64
        /// It is confirmed. It is kept while others are not, for its change is not theirs.
        var isCounted = false
    }

    fileprivate struct Timeline {
        var copies: Int
        /// Changes up to here are no report's any more.
        var floor: UInt64
        var told: [RecentChanges.Hit] = []
        /// In the order in which they came; so are their changes, each at most ``copies`` times.
        var reports: [Report] = []
    }

    private var timelines: [TimelineName: Timeline] = [:]

    /// Nothing was reported.
    package init() {}

    /// Whether no cursor would confirm anything.
    package var isEmpty: Bool { timelines.isEmpty }

    /// The client acknowledges up to `cursor` and reports rebuilds.
    ///
    /// - Parameters:
    ///   - before: Up to where it had acknowledged before.
    ///   - now: In milliseconds since 1970.
    /// - Returns: Each rebuild that is confirmed now.
    package mutating func acknowledged(
        upTo cursor: UInt64, before: UInt64, _ claims: [Claim], now: Int64
    ) -> [Confirmation] {
        for claim in claims {
            var timeline =
                timelines[claim.name] ?? Timeline(copies: claim.copies, floor: before)
            timeline.take(claim, now: now)
            timelines[claim.name] = timeline.reports.isEmpty ? nil : timeline
        }
        let confirmed = confirm(upTo: max(cursor, before))
        timelines = timelines.filter { !$0.value.reports.allSatisfy(\.isCounted) }
        return confirmed
    }

    /// The client resumes from `cursor`. What it confirms is remembered until the client
    /// acknowledges: a report that was not answered is repeated.
    ///
    /// - Returns: As ``acknowledged(upTo:before:_:now:)``.
    package mutating func resumed(from cursor: UInt64) -> [Confirmation] {
        confirm(upTo: cursor)
    }

    private mutating func confirm(upTo cursor: UInt64) -> [Confirmation] {
        var confirmed: [Confirmation] = []
        for name in timelines.keys {
            timelines[name]?.count(upTo: cursor) { change, milliseconds in
                confirmed.append(
                    Confirmation(kind: name.kind, change: change, milliseconds: milliseconds))
            }
        }
        return confirmed
    }
}

extension ReportedRebuilds.Timeline {
    fileprivate mutating func take(_ claim: ReportedRebuilds.Claim, now: Int64) {
        // The registration may be another than at the last report.
        copies = claim.copies
        forgetCounted()
        let known = told.last?.sequence ?? floor
        told += claim.told.filter { change in
            change.sequence > floor
                && (change.sequence > known || !told.contains { $0.sequence == change.sequence })
        }
        told.sort { $0.sequence < $1.sequence }
        forgetUnreported()
        guard let change = told.last else { return }
        for _ in 0..<min(claim.times, claim.copies) {
            reports.append(.init(change: change, at: now))
        }
        spread()
    }

    /// Forgets the oldest reports that are confirmed, and their changes, of a timeline that always
    /// has others that are not.
    private mutating func forgetCounted() {
        let surplus = reports.count - ReportedRebuilds.reportsMax / 2
        let count = reports.prefix(max(0, surplus)).prefix(while: \.isCounted).count
        guard count > 0 else { return }
        floor = max(floor, reports[count - 1].change.sequence)
        told.removeAll { $0.sequence <= floor }
        reports.removeAll { $0.change.sequence <= floor && $0.isCounted }
    }

    /// Forgets the oldest changes when there are too many, but none that a report is for.
    private mutating func forgetUnreported() {
        guard told.count > ReportedRebuilds.reportsMax else { return }
        let reported = Set(reports.map(\.change.sequence))
        let latest = told.suffix(ReportedRebuilds.reportsMax)
        told = told.dropLast(latest.count).filter { reported.contains($0.sequence) } + latest
    }

    /// Gives the reports changes of their own; the oldest may be left without, and go.
    private mutating func spread() {
        var (change, uses) = (told.count - 1, 0)
        var first = reports.startIndex
        for place in reports.indices.reversed() {
            while change >= 0,
                uses == copies || told[change].sequence > reports[place].change.sequence
            {
                change -= 1
                uses = 0
            }
            guard change >= 0 else {
                first = place + 1
                break
            }
            reports[place].change = told[change]
            uses += 1
        }
        first = max(first, reports.count - ReportedRebuilds.reportsMax)
        let counted = reports.prefix(first).count(where: \.isCounted)
        reports.removeFirst(first)
        // Then a later one is what was counted, as when a report is sent again.
        for _ in 0..<counted {
            guard let place = reports.firstIndex(where: { !$0.isCounted }) else { break }
            reports[place].isCounted = true
        }
    }

    /// Counts the reports whose changes a cursor covers, and says for each its change and how long it
    /// took, in milliseconds.
    fileprivate mutating func count(
        upTo cursor: UInt64, _ confirmed: (RecentChanges.Hit, Int64) -> Void
    ) {
        for place in reports.indices
        where !reports[place].isCounted && reports[place].change.sequence <= cursor {
            reports[place].isCounted = true
            let change = reports[place].change
            confirmed(change, max(0, reports[place].at - change.acceptedAt))
        }
    }
}
