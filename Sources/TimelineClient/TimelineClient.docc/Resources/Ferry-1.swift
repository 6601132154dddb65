import Foundation
import TimelineClient

/// How late the ferry is, from a moment on.
struct FerryEntry: TimelineEntry, Codable {
    var date: Date
    var minutesLate: Int
}
