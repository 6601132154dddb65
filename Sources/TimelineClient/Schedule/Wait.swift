import Foundation

extension TimeInterval {
    /// The interval limited to a range that is safe for arithmetic with dates: 0 if negative or
    /// NaN, and at most 366 days.
    var asWait: TimeInterval {
        self > 0 ? min(self, 366 * 86_400) : 0
    }
}
