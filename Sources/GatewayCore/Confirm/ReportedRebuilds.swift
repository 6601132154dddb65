/// The rebuilds that one client reported, each from its report until a cursor of the client
/// confirms the change that caused it.
///
/// The confirmation may come much later. While a change waits in a collapse window, the client's
/// cursor stays below it, although the client is notified of other changes and rebuilds for them.
/// The cursor that finally covers these changes comes without a report.
///
/// A report does not name its change. It is attributed to the latest change that the client was
/// notified of before the report arrived, and before the change of the timeline's next report: a
/// report may have been in flight when the next notification was sent. So every rebuild caused by a
/// change finds one. A report left without a change had another cause, such as the reload policy,
/// or was repeated because its response was lost. If the client was notified of more changes than
/// it rebuilt for, such a report may be attributed to one of them. Equal reports are not taken for
/// repeats: two rebuilds often take equally long.
///
/// Bounded: at most ``reportsMax`` reports of a timeline wait, only those of registered timelines.
package struct ReportedRebuilds: Sendable {
    /// The maximum number of waiting reports of one timeline, and of changes they may be attributed
    /// to; the oldest beyond it are not counted. It allows one per minute during the longest
    /// collapse window, an hour.
    package static let reportsMax = 64

    /// A client's report about one timeline.
    package struct TimelineReport: Sendable {
        package let name: TimelineID
        /// The changes that the client was notified of, in order: ``RecentChanges/told(_:after:)``.
        package let told: [RecentChanges.Hit]
        /// The number of registered timelines with this name. They differ only in their family,
        /// which reports do not name.
        package let copies: Int
        /// The number of reports at once; each of the timelines counts once.
        package let times: Int

        package init(name: TimelineID, told: [RecentChanges.Hit], copies: Int, times: Int) {
            self.name = name
            self.told = told
            self.copies = copies
            self.times = times
        }
    }

    /// A rebuild that a cursor confirmed.
    package struct Confirmation: Sendable, Equatable {
        /// The kind of the rebuilt timeline.
        package let kind: String
        /// The change that it is attributed to.
        package let change: RecentChanges.Hit
        /// The time from the change's acceptance to the report, ms.
        package let milliseconds: Int64
    }

    fileprivate struct Report {
        /// The change that the report is attributed to.
        var change: RecentChanges.Hit
        /// The time of arrival, ms since 1970.
        let at: Int64
        /// Whether it is confirmed. Kept while others are not, because its change is not available
        /// to them.
        var isCounted = false
    }

    fileprivate struct Timeline {
        var copies: Int
        /// The sequence up to which changes are no longer attributed to reports.
        var floor: UInt64
        var told: [RecentChanges.Hit] = []
        /// The reports in the order of arrival. Their changes are in the same order, each at most
        /// ``copies`` times.
        var reports: [Report] = []
    }

    private var timelines: [TimelineID: Timeline] = [:]

    package init() {}

    /// Whether no report waits for a cursor.
    package var isEmpty: Bool { timelines.isEmpty }

    /// Processes a client's acknowledgement up to `cursor` with its reports of rebuilds.
    ///
    /// - Parameters:
    ///   - before: The previously acknowledged sequence.
    ///   - now: The time in ms since 1970.
    /// - Returns: The rebuilds that are now confirmed.
    package mutating func acknowledged(
        upTo cursor: UInt64, before: UInt64, _ claims: [TimelineReport], now: Int64
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

    /// Processes a client's resumption at `cursor`. Confirmed reports are kept until the client
    /// acknowledges, because an unanswered report is repeated.
    ///
    /// - Returns: The rebuilds that are now confirmed.
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
    fileprivate mutating func take(_ claim: ReportedRebuilds.TimelineReport, now: Int64) {
        // The registration may have changed since the last report.
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

    /// Removes the oldest confirmed reports, and their changes, of a timeline that always has
    /// unconfirmed ones.
    private mutating func forgetCounted() {
        let surplus = reports.count - ReportedRebuilds.reportsMax / 2
        let count = reports.prefix(max(0, surplus)).prefix(while: \.isCounted).count
        guard count > 0 else { return }
        floor = max(floor, reports[count - 1].change.sequence)
        told.removeAll { $0.sequence <= floor }
        reports.removeAll { $0.change.sequence <= floor && $0.isCounted }
    }

    /// Removes the oldest changes when there are too many, but none that a report is attributed to.
    private mutating func forgetUnreported() {
        guard told.count > ReportedRebuilds.reportsMax else { return }
        let reported = Set(reports.map(\.change.sequence))
        let latest = told.suffix(ReportedRebuilds.reportsMax)
        told = told.dropLast(latest.count).filter { reported.contains($0.sequence) } + latest
    }

    /// Attributes distinct changes to the reports; removes the oldest that no change is left for.
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
        // A later report replaces a removed one that was counted, as when a report is repeated.
        for _ in 0..<counted {
            guard let place = reports.firstIndex(where: { !$0.isCounted }) else { break }
            reports[place].isCounted = true
        }
    }

    /// Counts the reports whose changes a cursor covers; passes on each change with its time, ms.
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
