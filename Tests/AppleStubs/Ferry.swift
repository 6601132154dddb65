// swift-format-ignore-file
// What the article AddToYourWidgetExtension.md leaves to its reader.
import AppIntents
import AppleFoundation
import WidgetKit
#if os(iOS)
    import ActivityKit

    struct CrossingAttributes: ActivityAttributes {
        struct ContentState: Codable, Hashable { var minutesLate: Int }
        var line: String
    }
#endif

struct ChooseLine: WidgetConfigurationIntent { var line = "1" }

struct Departure: Codable, Sendable { var date: Date }

enum Harbour {
    static func departures(of line: String) async throws -> [Departure] { [] }
    static func refreshLines() async throws {}
}

struct FerryEntry: TimelineEntry {
    static let unavailable = FerryEntry(Departure(date: .now))
    let date: Date
    init(_ departure: Departure) { date = departure.date }
}

enum FerryWidget { static let kind = "com.example.ferry.departure" }

extension FerryProvider {
    func placeholder(in context: Context) -> FerryEntry { .unavailable }
    func snapshot(for configuration: ChooseLine, in context: Context) async -> FerryEntry {
        .unavailable
    }
}
