import Foundation
import TimelineRuntime

/// The lamp from a moment on.
struct LampEntry: TimelineEntry, Codable {
    var date: Date
    var isLit: Bool
}

/// Switches the lamp.
struct SwitchLamp: AppIntent {
    static let title: LocalizedStringResource = "Switch the Lamp"

    @Parameter(title: "On", default: false) var isOn: Bool

    init() {}

    init(isOn: Bool) { self.isOn = isOn }

    func perform() async throws -> some IntentResult {
        try Lamp.current.set(isLit: isOn)
        // Does something where a client runs: in the extension's process.
        WidgetCenter.shared.reloadTimelines(ofKind: RoomWidget.kind)
        return .result()
    }
}

/// Rings in the hall, which only the app can do.
struct RingBell: AppIntent {
    static let title: LocalizedStringResource = "Ring the Bell"
    static let openAppWhenRun = true

    func perform() async throws -> some IntentResult {
        try Lamp.current.note("bell", "rung by \(CommandLine.arguments[1])")
        // In the app's process, whose listener leads to the extension.
        WidgetCenter.shared.reloadTimelines(ofKind: LightWidget.kind)
        return .result()
    }
}

/// Builds the timelines of both widgets.
struct LampProvider: AsyncTimelineProvider {
    let kind: String

    func placeholder(in context: Context) -> LampEntry { LampEntry(date: .now, isLit: false) }

    func snapshot(in context: Context) async -> LampEntry { placeholder(in: context) }

    func timeline(in context: Context) async throws -> Timeline<LampEntry> {
        let lamp = Lamp.current
        if !context.isPreview { try lamp.recordBuild(of: kind) }
        while lamp.isSlow { try await Task.sleep(for: .milliseconds(10)) }
        let (now, isLit) = (Date.now, lamp.isLit)
        // Nearer to each other than WidgetKit asks for.
        let entries = [now, now + 60].map { LampEntry(date: $0, isLit: isLit) }
        return Timeline(entries: entries, policy: .never)
    }
}

/// Shows whether the lamp is lit, with a toggle.
struct LightWidget: Widget {
    static let kind = "com.example.lamp.light"

    var body: some WidgetConfiguration {
        StaticConfiguration(kind: Self.kind, provider: LampProvider(kind: Self.kind)) { entry in
            Toggle(isOn: entry.isLit, intent: SwitchLamp(isOn: !entry.isLit)) {
                Text(entry.isLit ? "Lit" : "Dark")
            }
        }
        .supportedFamilies([.systemSmall])
    }
}

/// Shows where the lamp stands, which never changes, with a bell.
struct RoomWidget: Widget {
    static let kind = "com.example.lamp.room"

    var body: some WidgetConfiguration {
        StaticConfiguration(kind: Self.kind, provider: LampProvider(kind: Self.kind)) { _ in
            Button("In the hall", intent: RingBell())
        }
        .supportedFamilies([.systemSmall])
    }
}

/// The widgets of the extension.
struct LampWidgets: WidgetBundle {
    var body: some Widget {
        LightWidget()
        RoomWidget()
    }
}

#Preview(
    as: .systemSmall, widget: { LightWidget() },
    timelineProvider: { LampProvider(kind: LightWidget.kind) })
