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

/// The content of the widget.
struct FerryView: View {
    var entry: FerryEntry

    var body: some View {
        VStack {
            Text("Ferry")
            if entry.minutesLate == 0 {
                Text("on time")
            } else {
                Text("\(entry.minutesLate) minutes late")
            }
        }
    }
}

/// The widget. The catalog calls it by the same kind.
@main
struct FerryWidget: Widget {
    static let kind = "com.example.ferry.departure"

    var body: some WidgetConfiguration {
        StaticConfiguration(kind: Self.kind, provider: FerryProvider()) { entry in
            FerryView(entry: entry)
        }
        .configurationDisplayName("Ferry")
        .description("How late the ferry is.")
        .supportedFamilies([.systemSmall])
    }
}
