import Foundation
import WidgetModel

/// The remaining reloads of one placed widget: a limited number in any 24 hours.
///
/// The window of 24 hours is sliding: each reload counts until a day after it, and nothing happens
/// at midnight. At most `limit` dates are stored. The budget is not spread over the day, as
/// WidgetKit does based on habits that are unknown here: a widget that reloads too often in the
/// morning waits in the afternoon.
///
/// When the wall clock is set back, reloads that are now in the future count as made now, so that
/// no jump withholds reloads for more than a day. When it is set forward, they count as older, as
/// after a wait. No date is removed, so that a jump forward and back restores no reload.
public struct ReloadBudget: Sendable, Equatable {
    /// The default number of reloads per day. A frequently viewed widget typically gets 40 to 70
    /// (Apple, Keeping a widget up to date). 48, one every half hour, is in the lower half of that
    /// range, so that a widget that manages with it here also does on a device.
    public static let defaultLimit = 48
    /// The largest limit; more than one reload every ten seconds would not be a limit in practice.
    public static let limitMax = 8_640

    /// The time that a reload counts, seconds.
    static let window: TimeInterval = 86_400

    /// The number of reloads that may count at the same time: 1 to ``limitMax``.
    public let limit: Int
    /// The newest counted reloads, ascending, at most `limit`. A date is removed only for a newer
    /// one, never because of its age; see the type's comment.
    private(set) var dates: [Date] = []

    /// Creates a budget with all reloads left. A limit out of range is clamped.
    public init(limit: Int = Self.defaultLimit) {
        self.limit = min(max(limit, 1), Self.limitMax)
    }

    init(dates: [Date], limit: Int) {
        self.init(limit: limit)
        self.dates = dates.sorted().suffix(self.limit)
    }

    /// Returns the number of reloads that are allowed at `now`, one after the other.
    public mutating func remaining(now: Date) -> Int {
        clockStands(at: now)
        return limit - dates.count { now < $0 + Self.window }
    }

    /// Records a reload that counts. Also records one that was not allowed, in place of the oldest.
    public mutating func spend(now: Date) {
        clockStands(at: now)
        if dates.count == limit { dates.removeFirst() }
        dates.append(now)
    }

    /// The date at which the next reload is allowed, unless the clock is set back; `nil` if it is
    /// allowed at any time.
    var earliestReload: Date? {
        dates.count < limit ? nil : dates.first.map { $0 + Self.window }
    }

    /// Moves dates in the future to `now`, permanently: while a clock stays behind, further calls
    /// must not move them again.
    mutating func clockStands(at now: Date) {
        var index = dates.endIndex
        while index > dates.startIndex, dates[index - 1] > now {
            index -= 1
            dates[index] = now
        }
    }
}

extension ReloadBudget {
    /// The dates of the counted reloads, to be archived without loss of precision: seconds since
    /// the reference date in 2001, which is the internal form of a date. The limit is not included;
    /// the app states it again.
    public var json: JSONValue {
        .array(dates.map { .number($0.timeIntervalSinceReferenceDate) })
    }

    /// Reads the format that ``json`` writes; returns `nil` for anything else. If the limit is now
    /// smaller, the newest reloads count. Dates in the future are treated as after a clock was set
    /// back.
    public init?(_ json: JSONValue, limit: Int = Self.defaultLimit) {
        guard let values = json.arrayValue, values.count <= Self.limitMax else { return nil }
        var dates: [Date] = []
        for value in values {
            guard let seconds = value.numberValue, seconds.isFinite else { return nil }
            dates.append(Date(timeIntervalSinceReferenceDate: seconds))
        }
        self.init(dates: dates, limit: limit)
    }
}
