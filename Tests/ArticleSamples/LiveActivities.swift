// swift-format-ignore-file
// A Live Activity of the articles' game, as an app of Apple's systems writes it: the articles name
// Live Activities, and print no code of them.
import Foundation
import TimelineRuntime

struct AdventureAttributes: ActivityAttributes {
    public struct ContentState: Codable, Hashable { var healthLevel: Double; var eventDescription: String }

    var hero: String
}

struct RaiseShield: LiveActivityIntent {
    static var title: LocalizedStringResource = "Raise the Shield"
    func perform() async throws -> some IntentResult { .result() }
}

struct AdventureActivity: Widget {
    var body: some WidgetConfiguration {
        ActivityConfiguration(for: AdventureAttributes.self) { context in
            VStack(alignment: .leading) {
                HStack {
                    Text(context.attributes.hero).bold()
                    Spacer()
                    Text(context.isStale ? "Connection lost" : context.state.eventDescription)
                }
                ProgressView(value: context.state.healthLevel)
                Toggle("Shield", isOn: false, intent: RaiseShield())
            }
            .padding()
            .activityBackgroundTint(Color.cyan)
            .activitySystemActionForegroundColor(Color.black)
        } dynamicIsland: { context in
            DynamicIsland {
                DynamicIslandExpandedRegion(.leading, priority: 1) { Text(context.attributes.hero) }
                DynamicIslandExpandedRegion(.trailing) { Text(context.state.healthLevel, format: .percent) }
                DynamicIslandExpandedRegion(.center) { Text(context.state.eventDescription) }
                DynamicIslandExpandedRegion(.bottom) {
                    Button("Shield", intent: RaiseShield())
                    Link("Map", destination: URL(string: "game:///map")!)
                }
            } compactLeading: { Image(systemName: "shield") } compactTrailing: {
                Text(context.state.healthLevel, format: .percent)
            } minimal: { Button("!", intent: RaiseShield()) }
            .keylineTint(.cyan)
            .widgetURL(URL(string: "game:///hero"))
        }
    }
}

struct AdventureBundle: WidgetBundle { var body: some Widget { GameStatusWidget(); AdventureActivity() } }

/// The use of an activity by an app.
@MainActor func play() async throws {
    guard ActivityAuthorizationInfo().areActivitiesEnabled else { return }
    let alert = AlertConfiguration(title: "Hit!", body: "Spouty is hurt", sound: .default)
    for await one in Activity<AdventureAttributes>.activityUpdates {
        await one.update(one.content, alertConfiguration: alert)
    }
}
