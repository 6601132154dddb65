import Foundation
import Synchronization
import TimelineRuntime
import WidgetModel

/// A device with the app and some of its widgets: shows them, and performs a person's actions.
final class Device: Sendable {
    /// A placed widget.
    struct Placement: Sendable {
        /// The name of the widget in the demonstration.
        let name: String
        var widget: WidgetInfo
        let location: WidgetLocation
    }

    /// The reason why a person's action failed.
    struct Refused: Error, CustomStringConvertible {
        let description: String
    }

    private struct State {
        var placements: [Placement]
        var lock = DeviceLock.unlocked
        var told: Set<String> = []
        var isConnected = false
        var failures: [String] = []
        var opened: WidgetActivity?
        var client: TimelineClient?
        var run: Task<Void, Never>?
        var battle: Activity<BattleAttributes>?
    }

    private static let osVersion = OSVersion("26.1")

    let name: String
    let id: String
    let installation: Installation
    private let platform: WidgetDevice.Platform
    private let runtime: WidgetDeclarations
    private let state: Mutex<State>

    init(
        _ name: String, _ platform: WidgetDevice.Platform, run: String, installation: Installation,
        placements: [Placement]
    ) throws {
        self.name = name
        id = "\(name.lowercased())-\(run)"
        self.platform = platform
        self.installation = installation
        runtime = try WidgetDeclarations(GameWidgets())
        state = Mutex(State(placements: placements))
    }

    // MARK: Its life

    /// Registers, builds every timeline, and listens for notifications.
    func start(_ connection: CurlConnection, archive: String) throws {
        let placements = state.withLock { $0.placements }
        guard
            let configuration = TimelineClientConfiguration(
                app: GatewayAccess.app, client: id, platform: platform.rawValue,
                osVersion: Self.osVersion, widgets: placements.map(\.widget),
                observer: { [weak self] in self?.observe($0) })
        else { throw Refused(description: "\(id) is not a client id") }
        let client = TimelineClient(
            configuration: configuration, widgets: runtime, connection: connection,
            verifier: PublishedKeyVerifier(connection: connection, app: GatewayAccess.app),
            archive: ClientArchive(directory: archive), app: self)
        let run = Installation.$running.withValue(installation) { Task { await client.run() } }
        state.withLock { ($0.client, $0.run) = (client, run) }
    }

    func stop() async {
        // The archive would show it until its time is over.
        await state.withLock { $0.battle }?.end(nil, dismissalPolicy: .immediate)
        let run = state.withLock { state in
            defer { (state.client, state.run) = (nil, nil) }
            return state.run
        }
        run?.cancel()
        await run?.value
    }

    private func observe(_ event: TimelineClientEvent) {
        switch event {
        case .registered(let warnings): note(warnings.map(\.description))
        case .connected: state.withLock { $0.isConnected = true }
        case .notified(let notification):
            state.withLock { $0.told.formUnion(Self.names(in: notification)) }
        case .unverified(let failure): note(["not verified: \(failure)"])
        case .misconfigured(_, let fault): note(["\(fault)"])
        case .buildFailed(_, let reason), .interactionFailed(_, let reason),
            .recommendationsFailed(_, let reason), .controlFailed(_, let reason):
            note([reason])
        case .rebuilt, .controlRebuilt, .entriesTooClose, .relevanceInvalidated, .performed: break
        case .failed(let failure): note(["\(failure)"])
        case .archiveFailed(let failure): note(["\(failure)"])
        }
    }

    private func note(_ failures: [String]) { state.withLock { $0.failures += failures } }

    // MARK: What is seen

    var isConnected: Bool { state.withLock { $0.isConnected } }
    /// The names in notifications since the last ``forget()``.
    var told: Set<String> { state.withLock { $0.told } }
    /// The failures since the start.
    var failures: [String] { state.withLock { $0.failures } }

    /// Begins a new step.
    func forget() { state.withLock { $0.told = [] } }

    /// Returns the current content of each widget, and of a Live Activity, by its name.
    func shown() async -> [String: String] {
        var lines: [String: String] = [:]
        for placement in state.withLock({ $0.placements }) {
            lines[placement.name] = await line(of: placement)
        }
        lines["battle"] = await battleLine()
        return lines
    }

    /// Returns what the Lock Screen shows of a Live Activity.
    private func battleLine() async -> String? {
        let device = WidgetDevice(platform, osVersion: Self.osVersion)
        guard let client = state.withLock({ $0.client }),
            let activity = client.activities(in: .lockScreen).first,
            let environment = runtime.rules.environment(of: .lockScreen, on: device)
        else { return nil }
        return await client.shown(activity, in: environment)?.node.line()
    }

    private func line(of placement: Placement) async -> String {
        guard let environment = try? environment(of: placement) else { return "nothing" }
        let client = state.withLock { $0.client }
        return await client?.shown(placement.widget, in: environment)?.node.line() ?? "nothing"
    }

    private func environment(of placement: Placement) throws -> WidgetEnvironment {
        let traits = runtime.traits(ofKind: placement.widget.kind) ?? WidgetTraits()
        return try runtime.rules.environment(
            of: placement.widget, with: traits, at: placement.location,
            on: WidgetDevice(platform, osVersion: Self.osVersion),
            state: WidgetDeviceState(lock: state.withLock { $0.lock }))
    }

    // MARK: What a person does

    func set(lock: DeviceLock) async {
        let client = state.withLock { state in
            state.lock = lock
            return state.client
        }
        await client?.set(lock: lock)
    }

    /// Starts a Live Activity, as the app does.
    func startBattle(of hero: GameCharacter) throws {
        let battle = try Activity<BattleAttributes>.request(
            attributes: BattleAttributes(hero: hero.id, name: "\(hero.avatar) \(hero.name)"),
            content: ActivityContent(state: .init(health: hero.health), staleDate: nil),
            pushType: .token)
        state.withLock { $0.battle = battle }
    }

    /// Returns the names of the options for the first parameter of a kind's widgets.
    func choices(ofKind kind: String) async throws -> [String] {
        let parameter = runtime.gallery.first { $0.kind == kind }?.parameters.first
        return try await Installation.$running.withValue(installation) {
            try await parameter?.options()?.map(\.displayRepresentation.title.text) ?? []
        }
    }

    /// Returns the gallery preview of a kind.
    func preview(ofKind kind: String, in family: WidgetFamily) async throws -> String {
        let widget = WidgetInfo(kind: kind, family: family)
        let environment = try WidgetContextRules().environment(
            of: widget, with: WidgetTraits(), at: .homeScreen, on: WidgetDevice(platform))
        let entry = try await Installation.$running.withValue(installation) {
            try await runtime.snapshot(of: widget, isPreview: true)
        }
        return try runtime.draw(entry, of: widget, in: environment).line()
    }

    func edit(_ name: String, _ intent: some WidgetConfigurationIntent) async {
        let (client, widgets) = state.withLock { state in
            for index in state.placements.indices where state.placements[index].name == name {
                let old = state.placements[index].widget
                state.placements[index].widget = WidgetInfo(
                    kind: old.kind, family: old.family, intent: intent)
            }
            return (state.client, state.placements.map(\.widget))
        }
        await client?.place(widgets)
    }

    /// Taps a button or toggle; returns the widget's content while the intent is pending. Throws
    /// `InteractionRefusal` if the control is inactive, ``Refused`` if there is none.
    func tap(_ label: String, on name: String) async throws -> String {
        let (placement, client) = try placed(name)
        let environment = try environment(of: placement)
        let shown = await client.shown(placement.widget, in: environment)?.node
        guard let call = shown?.call(labelled: label) else {
            throw Refused(description: "\(name) has no button or toggle \(label)")
        }
        let seen = Mutex("no request was sent")
        var watched = installation
        watched.api.beforeChange = { [self] in
            let line = await line(of: placement)
            seen.withLock { $0 = line }
        }
        try await Installation.$running.withValue(watched) {
            try await client.interact(with: call, of: placement.widget, in: environment)
        }
        return seen.withLock { $0 }
    }

    /// Taps a widget outside its buttons and toggles; returns the activity that opens the app.
    /// Throws ``Refused`` when there is no such widget, or the app was not opened.
    func open(_ name: String) async throws -> WidgetActivity {
        let (placement, client) = try placed(name)
        let environment = try environment(of: placement)
        try await Installation.$running.withValue(installation) {
            try await client.open(placement.widget, in: environment)
        }
        guard let opened = state.withLock({ $0.opened }) else {
            throw Refused(description: "the app was not opened")
        }
        return opened
    }

    private func placed(_ name: String) throws -> (Placement, TimelineClient) {
        let (placement, client) = state.withLock { state in
            (state.placements.first { $0.name == name }, state.client)
        }
        guard let placement, let client else {
            throw Refused(description: "no widget is called \(name)")
        }
        return (placement, client)
    }

    private static func names(in notification: ReloadNotification) -> [String] {
        func short(_ kind: String) -> String {
            kind.split(separator: ".").last.map(String.init) ?? kind
        }
        if notification.all { return ["everything"] }
        let reloads = notification.reload.map { reload in
            let values = reload.parameters.map { "\($0.name): \($0.value ?? "unset")" }
            return values.isEmpty
                ? short(reload.kind) : "\(short(reload.kind)) {\(values.joined(separator: ", "))}"
        }
        return reloads + notification.recommendations.map { "recommendations of \(short($0))" }
            + notification.activities.map { short($0.type) }
    }
}

/// The app on this device, here in the same process as its widget extension.
extension Device: AppProcess {
    func perform(_ call: IntentCall, inForeground: Bool) async throws {
        try await Installation.$running.withValue(installation) {
            try await runtime.perform(call)
        }
    }

    func open(_ activity: WidgetActivity) async { state.withLock { $0.opened = activity } }
}
