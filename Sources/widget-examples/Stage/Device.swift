import Foundation
import Synchronization
import TimelineClient
import TimelineClientHTTP
import WidgetModel

/// A device with the app and some of its widgets: shows them, and lets a person use them.
final class Device: Sendable {
    /// A widget where a person put it.
    struct Placement: Sendable {
        /// What the demonstration calls it.
        let name: String
        var widget: WidgetInfo
        let location: WidgetLocation
    }

    /// Why a person cannot do something with a widget.
    struct Refused: Error, CustomStringConvertible {
        let description: String
    }

    private struct State {
        var placements: [Placement]
        var lock = DeviceLock.unlocked
        var timelines: [WidgetInfo: AnyTimeline] = [:]
        var toggles: [IntentCall: ToggleInteraction] = [:]
        var told: Set<String> = []
        var isConnected = false
        var failures: [String] = []
        var client: TimelineClient?
        var run: Task<Void, Never>?
    }

    let name: String
    let id: String
    let installation: Installation
    private let platform: WidgetDevice.Platform
    private let runtime: WidgetRuntime
    private let intents: InteractiveIntents
    private let state: Mutex<State>

    init(
        _ name: String, _ platform: WidgetDevice.Platform, run: String, installation: Installation,
        placements: [Placement]
    ) throws {
        self.name = name
        id = "\(name.lowercased())-\(run)"
        self.platform = platform
        self.installation = installation
        runtime = try WidgetRuntime(GameWidgets())
        intents = try InteractiveIntents(GameWidgets.intents)
        state = Mutex(State(placements: placements))
    }

    // MARK: Its life

    /// Registers, builds every timeline and listens from now on.
    func start(_ connection: CurlConnection, archive: String) throws {
        let placements = state.withLock { $0.placements }
        guard
            let configuration = TimelineClientConfiguration(
                app: GatewayAccess.app, client: id, platform: platform.rawValue,
                osVersion: OSVersion("26.1"), widgets: placements.map(\.widget),
                observer: { [weak self] in self?.observe($0) })
        else { throw Refused(description: "\(id) is no client id") }
        let client = TimelineClient(
            configuration: configuration, widgets: runtime, connection: connection,
            verifier: PublishedKeyVerifier(connection: connection, app: GatewayAccess.app),
            archive: ClientArchive(directory: archive))
        let run = Installation.$running.withValue(installation) { Task { await client.run() } }
        state.withLock { ($0.client, $0.run) = (client, run) }
    }

    func stop() async {
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
            if !notification.recommendations.isEmpty { refreshRecommendations() }
        case .unverified(let failure): note(["not verified: \(failure)"])
        case .rebuilt(let widget, let timeline):
            state.withLock { $0.timelines[widget] = timeline }
            let controls = (try? drawn(widget, at: .homeScreen))?.node.controls ?? []
            state.withLock { state in
                for control in controls {
                    guard let isOn = control.isOn else { continue }
                    state.toggles[control.call]?.rebuilt(isOn: isOn)
                }
            }
        case .buildFailed(_, let reason), .interactionFailed(_, let reason): note([reason])
        case .relevanceInvalidated: break
        case .failed(let failure): note(["\(failure)"])
        case .archiveFailed(let failure): note(["\(failure)"])
        }
    }

    private func note(_ failures: [String]) { state.withLock { $0.failures += failures } }

    /// What the app does when its recommendations are stale: they are made of what is on the device,
    /// so that comes first.
    private func refreshRecommendations() {
        Task { [installation] in
            guard let characters = try? await installation.api.characters() else { return }
            installation.store.characters = characters
            state.withLock { $0.client }?.widgetCenter.invalidateConfigurationRecommendations()
        }
    }

    // MARK: What is seen

    var isConnected: Bool { state.withLock { $0.isConnected } }
    /// What notifications named since the last ``forget()``.
    var told: Set<String> { state.withLock { $0.told } }
    /// Everything that went wrong since the start.
    var failures: [String] { state.withLock { $0.failures } }

    /// Begins a new step.
    func forget() { state.withLock { $0.told = [] } }

    /// What each widget shows now, by its name.
    var shown: [String: String] {
        let (placements, toggles) = state.withLock { ($0.placements, $0.toggles) }
        return Dictionary(
            uniqueKeysWithValues: placements.map { placement in
                let drawn = try? drawn(placement.widget, at: placement.location)
                return (placement.name, drawn?.node.line { toggles[$0]?.isOn } ?? "nothing")
            })
    }

    /// A widget as the device draws it, from its timeline or else as a placeholder.
    private func drawn(
        _ widget: WidgetInfo, at location: WidgetLocation
    ) throws -> (node: WidgetNode, environment: WidgetEnvironment) {
        let (timeline, lock) = state.withLock { ($0.timelines[widget], $0.lock) }
        let entry = timeline?.entry(at: .now)
        let traits = runtime.gallery.first { $0.kind == widget.kind }?.traits ?? WidgetTraits()
        let environment = try WidgetContextRules().environment(
            of: widget, with: traits, at: location,
            on: WidgetDevice(platform, osVersion: OSVersion("26.1")),
            state: WidgetDeviceState(lock: lock), hasContent: entry != nil)
        let node = try runtime.draw(
            entry ?? runtime.placeholder(of: widget), of: widget, in: environment)
        return (node, environment)
    }

    // MARK: What a person does

    func setLock(_ lock: DeviceLock) { state.withLock { $0.lock = lock } }

    /// The names of what a person may choose from for the first parameter of a kind's widgets.
    func choices(ofKind kind: String) async throws -> [String] {
        let parameter = runtime.gallery.first { $0.kind == kind }?.parameters.first
        return try await Installation.$running.withValue(installation) {
            try await parameter?.options()?.map(\.displayRepresentation.title.text) ?? []
        }
    }

    /// What the gallery shows of a kind.
    func preview(ofKind kind: String, in family: WidgetFamily) async throws -> String {
        let widget = WidgetInfo(kind: kind, family: family)
        let environment = try WidgetContextRules().environment(
            of: widget, with: WidgetTraits(), at: .homeScreen, on: WidgetDevice(platform))
        let entry = try await Installation.$running.withValue(installation) {
            try await runtime.snapshot(of: widget, isPreview: true)
        }
        return try runtime.draw(entry, of: widget, in: environment).line()
    }

    /// Chooses something else for a widget.
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

    /// Taps a button or toggle; returns what the widget shows at once, before anything was done.
    ///
    /// - Throws: `InteractionRefusal` where it does nothing, ``Refused`` when there is none.
    func tap(_ label: String, on name: String) async throws -> String {
        guard let placement = state.withLock({ $0.placements.first { $0.name == name } }) else {
            throw Refused(description: "no widget is called \(name)")
        }
        let (node, environment) = try drawn(placement.widget, at: placement.location)
        guard let control = node.controls.first(where: { $0.label == label }) else {
            throw Refused(description: "\(name) has no button or toggle \(label)")
        }
        var actions: [ToggleInteraction.Action] = []
        if let isOn = control.isOn {
            try state.withLock { state in
                var toggle = state.toggles[control.call] ?? ToggleInteraction(isOn: isOn)
                actions = try toggle.tap(in: environment, now: .now)
                state.toggles[control.call] = toggle
            }
        } else if let refusal = environment.interactionRefusal {
            throw refusal
        } else {
            actions = [.perform(isOn: true)]
        }
        let atOnce = shown[name] ?? ""
        while !actions.isEmpty {
            switch actions.removeFirst() {
            case .perform: actions += await perform(control)
            case .reload:
                state.withLock { $0.client }?.widgetCenter.reloadTimelines(
                    ofKind: placement.widget.kind)
            }
        }
        return atOnce
    }

    private func perform(_ control: WidgetNode.Control) async -> [ToggleInteraction.Action] {
        var failure: String?
        do {
            try await Installation.$running.withValue(installation) {
                try await intents.perform(control.call)
            }
        } catch {
            failure = "\(error)"
            note(["\(control.call.intent): \(error)"])
        }
        return state.withLock { state in
            guard control.isOn != nil else { return [.reload] }
            return if let failure {
                state.toggles[control.call]?.failed(failure) ?? []
            } else {
                state.toggles[control.call]?.performed() ?? []
            }
        }
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
    }
}
