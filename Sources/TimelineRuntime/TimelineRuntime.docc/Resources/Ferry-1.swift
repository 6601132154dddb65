import Foundation
import TimelineRuntime

/// The delay of the ferry, from a moment on.
struct FerryEntry: TimelineEntry, Codable {
    var date: Date
    var minutesLate: Int
}
