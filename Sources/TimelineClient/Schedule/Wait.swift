import Foundation

extension TimeInterval {
    /// These seconds as a wait that arithmetic with dates is safe with: 0 when negative or not a
    /// number, and 366 days at most.
    var asWait: TimeInterval {
        self > 0 ? min(self, 366 * 86_400) : 0
    }
}
