import Foundation
import Testing
import WidgetModel

@testable import TimelineRuntime
@testable import WidgetViews

/// Returns a moment, in seconds after the reference date.
func date(_ seconds: Double) -> Date {
    Date(timeIntervalSinceReferenceDate: seconds)
}

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

extension WidgetInfo {
    /// Returns where the widget is shown: on the Home Screen of an iPhone in use, or elsewhere.
    func environment(
        at location: WidgetLocation = .homeScreen, on device: WidgetDevice = WidgetDevice(.iOS),
        state: WidgetDeviceState = WidgetDeviceState(), hasContent: Bool = true
    ) throws -> WidgetEnvironment {
        try WidgetContextRules().environment(
            of: self, with: WidgetTraits(), at: location, on: device, state: state,
            hasContent: hasContent)
    }
}

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
        issuer: "https://gateway", audience: "com.mygame", issuedAt: 0,
        expires: ScriptedGateway.seconds + 3_600, id: "n\(sequence)", sequence: sequence,
        reload: widgets.map { info in
            .init(
                kind: info.kind,
                parameters: info.configuration.sorted { $0.key < $1.key }.map {
                    .init(name: $0.key, value: $0.value.texts.first)
                })
        },
        recommendations: sets, all: all)
}

/// Returns an engine that resumed at sequence 10, where everything is fresh, and has a stream open.
func runningEngine(
    _ widgets: [WidgetInfo], sets: [RecommendationSet] = [], reloadDate: Date? = nil,
    adjust: (inout ReloadEngine.Settings) -> Void = { _ in }
) -> ReloadEngine {
    var settings = ReloadEngine.Settings()
    // Without jitter, tests can name the dates.
    settings.schedule.policyJitterMax = 0
    adjust(&settings)
    let document = registration(widgets, sets: sets)
    var positions: [EngineItem: EngineState.Position] = [:]
    for item in ReloadEngine.items(of: document) {
        positions[item] = .init(cursor: cursor(10), awaitsBuild: false)
    }
    var engine = ReloadEngine(
        state: EngineState(
            registered: document, digest: "own", position: cursor(10), positions: positions),
        desired: document, settings: settings, seed: 1)
    let orders = engine.handle(
        .started(widgets.map { .init(widget: $0, reloadDate: reloadDate) }))
    #expect(
        orders == [.connect(attempt: 1, since: cursor(10))],
        "a restart registers or builds what is fresh")
    engine.handle(.opened(attempt: 1, resumedFrom: cursor(10)))
    return engine
}

extension ReloadEngine {
    /// Handles an event on a device whose clock is never set.
    @discardableResult
    mutating func handle(_ event: EngineEvent, now: Duration = .zero) -> [EngineAction] {
        handle(event, now: now, date: Date(timeIntervalSinceReferenceDate: now / .seconds(1)))
    }

    /// Handles a notification that names these widgets.
    @discardableResult
    mutating func hear(
        of widgets: [WidgetInfo], at sequence: UInt64, attempt: Int = 1, now: Duration = .zero
    ) -> [EngineAction] {
        handle(.notification(attempt: attempt, claims(widgets, sequence: sequence)), now: now)
    }

    /// Handles the end of a build.
    @discardableResult
    mutating func finish(_ widget: WidgetInfo, now: Duration = .zero) -> [EngineAction] {
        handle(.rebuilt(widget, milliseconds: 1, reloadDate: nil), now: now)
    }
}

/// Returns the order to acknowledge a cursor and these builds.
func acknowledge(_ cursor: Cursor, rebuilt: [WidgetInfo] = []) -> EngineAction {
    var done = Acknowledgement(cursor: cursor)
    done.rebuilt = rebuilt.map { .init(widget: $0, milliseconds: 1) }
    return .acknowledge(done)
}
