import Foundation
import WidgetModel

@testable import TimelineClient

/// Returns a cursor of the first epoch, or of another one.
func cursor(_ sequence: UInt64, epoch: UInt32 = 1, nonce: UInt32 = 0) -> Cursor {
    Cursor(epoch: EpochID(ordinal: epoch, nonce: nonce), sequence: sequence, tag: 0)
}

/// Returns a character widget of the sample game.
func character(_ name: String) -> WidgetInfo {
    WidgetInfo(
        kind: "com.mygame.character-detail", family: .systemSmall,
        configuration: ["character": .single(name)])
}

/// The status widget of the sample game, which has no configuration.
let status = WidgetInfo(kind: "com.mygame.game-status", family: .systemSmall)

/// Returns a registration of these widgets and these recommendation sets.
func registration(_ widgets: [WidgetInfo], sets: [RecommendationSet] = []) -> ClientRegistration {
    ClientRegistration(
        platform: "iOS",
        widgets: widgets.map {
            ConfiguredWidget(
                kind: $0.kind, family: $0.family.rawValue, parameters: $0.configuration)
        },
        recommendations: sets)
}

/// Returns a recommendation set of one kind with these characters.
func recommended(_ kind: String, _ names: [String]) -> RecommendationSet {
    RecommendationSet(
        kind: kind,
        items: names.map { .init(parameters: ["character": .single($0)], description: $0) })
}

/// Returns the claims of a notification that names these widgets and sets.
func claims(
    _ widgets: [WidgetInfo] = [], sets: [String] = [], all: Bool = false, sequence: UInt64 = 1
) -> ReloadNotification {
    ReloadNotification(
        issuer: "https://gateway", audience: "com.mygame", issuedAt: 0, expires: .max,
        id: "n\(sequence)", sequence: sequence,
        reload: widgets.map { info in
            .init(
                kind: info.kind,
                parameters: info.configuration.sorted { $0.key < $1.key }.map {
                    .init(name: $0.key, value: $0.value.texts.first)
                })
        },
        recommendations: sets, all: all)
}

extension ReloadEngine {
    /// Handles an event on a device whose clock is never set.
    mutating func handle(_ event: EngineEvent, now: Duration) -> [EngineAction] {
        handle(event, now: now, date: Date(timeIntervalSinceReferenceDate: now / .seconds(1)))
    }
}

/// Returns the archived timelines of these widgets, whose policies never ask for a reload.
func kept(_ widgets: [WidgetInfo]) -> [EngineEvent.KeptTimeline] {
    widgets.map { .init(widget: $0, reloadDate: nil) }
}
