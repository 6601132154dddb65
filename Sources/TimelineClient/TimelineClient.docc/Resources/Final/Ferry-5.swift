import Foundation
import TimelineClient
import TimelineClientHTTP

/// How late the ferry is, from a moment on.
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

/// What the widget shows.
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

/// Keeps the widget current until the program is stopped.
@main
struct Ferry {
    static func main() async throws {
        let environment = ProcessInfo.processInfo.environment
        let runtime = try WidgetRuntime([FerryWidget().body])
        let token = environment["FERRY_TOKEN"]
        let connection = try CurlConnection(
            .init(
                gateway: environment["FERRY_GATEWAY"] ?? "https://127.0.0.1:8443",
                caFile: environment["FERRY_CA"], bearerToken: { token }))
        let widget = WidgetInfo(kind: FerryWidget.kind, family: .systemSmall)
        guard
            let configuration = TimelineClientConfiguration(
                app: "com.example.ferry", client: "my-phone", platform: "iOS", widgets: [widget],
                observer: { event in
                    guard case .rebuilt(let widget, let timeline) = event else { return }
                    show(widget, timeline, runtime)
                })
        else { return }
        let client = TimelineClient(
            configuration: configuration, widgets: runtime, connection: connection,
            verifier: PublishedKeyVerifier(connection: connection, app: "com.example.ferry"))
        await client.run()
    }

    /// Prints what the widget shows on an iPhone's Home Screen.
    static func show(_ widget: WidgetInfo, _ timeline: AnyTimeline, _ runtime: WidgetRuntime) {
        guard let entry = timeline.entry(at: .now),
            let environment = try? WidgetContextRules().environment(
                of: widget, with: WidgetTraits(), at: .homeScreen, on: WidgetDevice(.iOS)),
            let node = try? runtime.draw(entry, of: widget, in: environment)
        else { return }
        FileHandle.standardOutput.write(Data((text(of: node) + "\n").utf8))
    }

    /// The texts of a drawing, one after the other.
    static func text(of node: WidgetNode) -> String {
        switch node.content {
        case .text(let text): text
        case .stack(_, let parts): parts.map(text).joined(separator: ": ")
        default: ""
        }
    }
}
