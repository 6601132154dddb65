import Foundation
import TimelineRuntime

/// The delay of the ferry, from a moment on.
struct FerryEntry: TimelineEntry, Codable {
    var date: Date
    var minutesLate: Int
}

/// Builds the timelines from what the harbour's server says: here, a file.
struct FerryProvider: AsyncTimelineProvider {
    func placeholder(in context: Context) -> FerryEntry {
        FerryEntry(date: .now, minutesLate: 0)
    }

    func snapshot(in context: Context) async -> FerryEntry { placeholder(in: context) }

    func timeline(in context: Context) async throws -> Timeline<FerryEntry> {
        let text = try String(contentsOfFile: "minutes-late", encoding: .utf8)
        let minutes = Int(text.trimmingCharacters(in: .whitespacesAndNewlines)) ?? 0
        let entry = FerryEntry(date: .now, minutesLate: minutes)
        return Timeline(entries: [entry], policy: .never)
    }
}
