/// Decides which of many similar events are logged, so that nobody can fill the log. Of each
/// subject the first few events in each window are logged, and a summary counts the rest.
///
/// Holds at most ``subjectsMax`` subjects; further ones share one count until others expire. The
/// work of an event does not depend on the number of subjects; a summary visits all of them.
package struct LogSampler<Subject: Hashable & Sendable>: Sendable {
    /// The events of a subject that were not logged.
    package struct Summary: Sendable, Equatable {
        /// The subject, or `nil` for all subjects for which there was no room.
        package let subject: Subject?
        /// The number of its events since its last summary that were not logged.
        package let suppressed: Int
    }

    private struct Count {
        var windowEnd = Int64.min
        var events = 0
        var suppressed = 0
    }

    private let perWindow: Int
    private let window: Int64
    private let subjectsMax: Int
    private var counts: [Subject: Count] = [:]
    /// The count of all subjects for which there was no room.
    private var others = Count()

    /// Creates a sampler.
    ///
    /// - Parameters:
    ///   - perWindow: The number of events of a subject that are logged in a window.
    ///   - window: The length of a window, in milliseconds.
    package init(perWindow: Int = 3, window: Int64 = 60_000, subjectsMax: Int = 1_024) {
        self.perWindow = max(1, perWindow)
        self.window = max(1, window)
        self.subjectsMax = max(1, subjectsMax)
    }

    /// The number of subjects that are counted.
    package var count: Int { counts.count }

    /// Counts an event, and returns whether it is logged.
    ///
    /// - Parameter now: Monotonic milliseconds.
    package mutating func admits(_ subject: Subject, now: Int64) -> Bool {
        guard counts[subject] != nil || counts.count < subjectsMax else {
            return admit(in: &others, now: now)
        }
        return admit(in: &counts[subject, default: Count()], now: now)
    }

    /// Removes the subjects whose window has ended; returns a summary of each with events left out.
    /// Call it at least once per window: only this makes room for further subjects.
    ///
    /// - Parameter atEnd: Whether to treat all windows as ended.
    package mutating func summaries(now: Int64, atEnd: Bool = false) -> [Summary] {
        let ended = counts.filter { atEnd || $0.value.windowEnd <= now }
        for subject in ended.keys { counts[subject] = nil }
        var summaries = ended.map { Summary(subject: $0.key, suppressed: $0.value.suppressed) }
        if atEnd || others.windowEnd <= now {
            summaries.append(Summary(subject: nil, suppressed: others.suppressed))
            others = Count()
        }
        return summaries.filter { $0.suppressed > 0 }
    }

    private func admit(in count: inout Count, now: Int64) -> Bool {
        if now >= count.windowEnd {
            count.windowEnd = now + window
            count.events = 0
        }
        count.events += 1
        guard count.events > perWindow else { return true }
        count.suppressed += 1
        return false
    }
}
