import Foundation
import TimelineRuntime

/// A battle of a character.
struct BattleAttributes: ActivityAttributes {
    struct ContentState: Codable, Hashable { var health: Double }

    /// The id of the character, to which the catalog's rule refers.
    var hero: String
    var name: String
}

/// Shows a character's state during a battle.
struct BattleActivity: Widget {
    var body: some WidgetConfiguration {
        ActivityConfiguration(for: BattleAttributes.self) { context in
            VStack {
                Text("Battle of \(context.attributes.name)")
                Gauge(value: context.state.health) { Text("health") }
            }
            .padding()
        } dynamicIsland: { context in
            DynamicIsland {
                DynamicIslandExpandedRegion(.leading) { Text(context.attributes.name) }
                DynamicIslandExpandedRegion(.bottom) {
                    Gauge(value: context.state.health) { Text("health") }
                }
            } compactLeading: {
                Image(systemName: "shield")
            } compactTrailing: {
                Text(context.state.health, format: .percent)
            } minimal: {
                Text(context.state.health, format: .percent)
            }
        }
        .contentSource { context in
            let characters = try await Installation.current.api.characters()
            guard let hero = characters.first(where: { $0.id == context.attributes.hero }) else {
                return nil
            }
            return .update(ActivityContent(state: .init(health: hero.health), staleDate: nil))
        }
    }
}
