import Foundation

@testable import TimelineClient

/// A moment, in seconds after the reference date.
func date(_ seconds: Double) -> Date {
    Date(timeIntervalSinceReferenceDate: seconds)
}
