import Foundation
import WidgetModel

/// The reloads one placed widget may still have: so many in any 24 hours.
///
/// The 24 hours roll: each reload counts until a day after it, and nothing happens at midnight.
/// At most `limit` dates are held. It does not spread them over the day, as WidgetKit does by habits
/// that nothing here knows: what asks too often in the morning waits in the afternoon.
///
/// When the wall clock goes back, reloads it now places in the future count as made now, so no
/// jump withholds reloads for more than a day. When it goes forth they seem longer ago, as after a
/// wait; nothing is forgotten, so that a jump forth and back gives nothing away.
public struct ReloadBudget: Sendable, Equatable {
    /// Reloads a day unless told otherwise. A widget that is often seen typically gets 40 to 70
    /// (Apple, Keeping a widget up to date). 48 is one every half hour, from the lower half of
    /// those: what gets by with it here gets by on a device.
    public static let defaultLimit = 48
    /// The largest limit: more than one reload every ten seconds is no budget.
    public static let limitMax = 8_640

    /// Seconds a reload counts.
    static let window: TimeInterval = 86_400

    /// Reloads that may count at the same time: 1 to ``limitMax``.
    public let limit: Int
    /// The newest counted reloads, ascending, no more than `limit`. They are dropped for newer
    /// ones only, never for their age: see above.
    private(set) var dates: [Date] = []

    /// A budget from which nothing is spent. A limit out of bounds counts as the nearest in them.
    public init(limit: Int = Self.defaultLimit) {
        self.limit = min(max(limit, 1), Self.limitMax)
    }

    /// A budget from which reloads were spent at these dates.
    init(dates: [Date], limit: Int) {
        self.init(limit: limit)
        self.dates = dates.sorted().suffix(self.limit)
    }

    /// When the next reload that counts may run: `now` when one may at once.
    public mutating func nextReload(now: Date) -> Date {
        clockStands(at: now)
        return max(now, earliestReload ?? now)
    }

    /// Reloads that may run at `now`, one after the other.
    public mutating func remaining(now: Date) -> Int {
        clockStands(at: now)
        return limit - dates.count { now < $0 + Self.window }
    }

    /// Notes a reload that counts. One that was not allowed is noted as well; the oldest is
    /// forgotten for it.
    public mutating func spend(now: Date) {
        clockStands(at: now)
        if dates.count == limit { dates.removeFirst() }
        dates.append(now)
    }

    /// When the next one may run, unless the clock goes back; `nil` for at any time.
    var earliestReload: Date? {
        dates.count < limit ? nil : dates.first.map { $0 + Self.window }
    }

    /// What lies in the future counts as made now, and stays there: a clock that stays behind
    /// must not renew it with every question.
    mutating func clockStands(at now: Date) {
        var index = dates.endIndex
        while index > dates.startIndex, dates[index - 1] > now {
            index -= 1
            dates[index] = now
        }
    }
}

extension ReloadBudget {
    /// What survives a restart, to the last bit: when the counted reloads were, in seconds since the
    /// reference date, 2001, for those are what a date holds. The limit is the app's to state again.
    public var json: JSONValue {
        .array(dates.map { .number($0.timeIntervalSinceReferenceDate) })
    }

    /// Reads what ``json`` wrote; `nil` when it is not of that form. With a smaller limit than
    /// before the newest reloads count, and dates in the future do as after a clock went back.
    public init?(_ json: JSONValue, limit: Int = Self.defaultLimit) {
        guard let values = json.arrayValue, values.count <= Self.limitMax else { return nil }
        var dates: [Date] = []
        for value in values {
            let seconds: Double
            switch value {
            case .number(let number): seconds = number
            case .integer(let number): seconds = Double(number)
            default: return nil
            }
            guard seconds.isFinite else { return nil }
            dates.append(Date(timeIntervalSinceReferenceDate: seconds))
        }
        self.init(dates: dates, limit: limit)
    }
}
