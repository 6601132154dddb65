import Foundation
import WidgetModel

/// Keeps the timelines of one client current: registers its widgets, listens for notifications,
/// rebuilds exactly what they name, and tells the gateway what it has done.
///
/// It is the thin shell around a pure engine, which decides. Several clients may live in one
/// process; each has its own id and its own archive.
public actor TimelineClient {
    /// What was built last, by widget.
    public internal(set) var timelines: [WidgetInfo: AnyTimeline] = [:]

    let configuration: TimelineClientConfiguration
    let runtime: WidgetRuntime
    let service: GatewayService
    let verifier: any NotificationVerifying
    let archive: ArchiveFile?
    let settings: ReloadEngine.Settings
    private let origin = ContinuousClock.now

    var widgets: [WidgetInfo]
    var engine: ReloadEngine?
    var kept: [WidgetInfo: ArchiveDocument.Kept] = [:]
    /// When reload policies ask, on the clock of `now`.
    var policyReloads: [WidgetInfo: Duration] = [:]
    var serverTime = ServerTime()
    private var work: AsyncStream<EngineAction>.Continuation?
    private var timer: (task: Task<Void, Never>, due: Duration)?

    /// A client; nothing happens before ``run()``.
    ///
    /// - Parameters:
    ///   - configuration: Who it is, and what it tells the gateway of itself.
    ///   - widgets: The widgets the app declares.
    ///   - connection: How it reaches the gateway.
    ///   - verifier: Tells whether notifications are the gateway's.
    ///   - archive: Where it keeps what a restart resumes from; without one a restart registers
    ///     and rebuilds all.
    public init(
        configuration: TimelineClientConfiguration, widgets: WidgetRuntime,
        connection: any GatewayConnection, verifier: any NotificationVerifying,
        archive: ArchiveFile? = nil
    ) {
        self.init(
            configuration: configuration, widgets: widgets, connection: connection,
            verifier: verifier, archive: archive, settings: configuration.engineSettings)
    }

    /// A client with waits and bounds of the caller's choice.
    package init(
        configuration: TimelineClientConfiguration, widgets: WidgetRuntime,
        connection: any GatewayConnection, verifier: any NotificationVerifying,
        archive: ArchiveFile?, settings: ReloadEngine.Settings
    ) {
        self.configuration = configuration
        self.runtime = widgets
        self.service = GatewayService(connection: connection, app: configuration.app)
        self.verifier = verifier
        self.archive = archive
        self.settings = settings
        self.widgets = configuration.widgets
    }

    /// The calls an app makes when it knows itself what is stale.
    public nonisolated var widgetCenter: WidgetCenter { WidgetCenter(client: self) }

    /// The widgets that are placed.
    public var placedWidgets: [WidgetInfo] { widgets }

    /// Everything up to here is applied; `nil` before the first registration.
    public var cursor: Cursor? { engine?.cursor }

    /// Takes what people have placed now, as a whole: registers it, builds what is new and forgets
    /// what is gone. Widgets configured alike stand in the list as often as they are placed.
    public func place(_ widgets: [WidgetInfo]) {
        self.widgets = widgets
        guard engine != nil else { return }
        let placed = Set(widgets)
        timelines = timelines.filter { placed.contains($0.key) }
        kept = kept.filter { placed.contains($0.key) }
        policyReloads = policyReloads.filter { placed.contains($0.key) }
        handle(.configurationChanged(registration(recommendations: [])))
    }

    /// Runs until the calling task is cancelled; survives everything the gateway and the network
    /// do. A second call while one runs returns at once.
    public func run() async {
        guard engine == nil else { return }
        let (actions, continuation) = AsyncStream.makeStream(of: EngineAction.self)
        work = continuation
        resume()
        await withDiscardingTaskGroup { group in
            handle(.started)
            // Not unbounded: the engine orders each thing once at a time.
            for await action in actions {
                group.addTask { await self.perform(action) }
            }
            group.cancelAll()
        }
        timer?.task.cancel()
        await timer?.task.value
        timer = nil
        save()
        work = nil
        engine = nil
    }

    /// Reads the archive and makes the engine.
    private func resume() {
        var document =
            archive?.load(owner: configuration.owner)
            ?? ArchiveDocument(owner: configuration.owner)
        for (item, position) in document.state.positions {
            guard case .timeline(let info) = item else { continue }
            let old = document.timelines[info]
            if let entries = old?.entries.flatMap({ runtime.decode($0, of: info) }) {
                let reloadAt = old?.reloadAt
                timelines[info] = AnyTimeline(
                    entries: entries, reloadDate: reloadAt.map(Date.init(timeIntervalSince1970:)))
                kept[info] = old
                if let reloadAt {
                    schedulePolicy(
                        of: info, at: Date(timeIntervalSince1970: reloadAt), least: .zero)
                }
            } else {
                document.state.positions[item] = .init(cursor: position.cursor, awaitsBuild: true)
            }
        }
        engine = ReloadEngine(
            state: document.state,
            desired: registration(recommendations: runtime.recommendationSets()),
            settings: settings, seed: UInt64.random(in: .min ... .max))
    }

    /// The only way into the engine: decides, then orders what was decided.
    @discardableResult
    func handle(_ event: EngineEvent) -> ReloadEngine? {
        guard let actions = engine?.handle(event, now: now) else { return nil }
        for action in actions {
            if action == .save { save() } else { work?.yield(action) }
        }
        reschedule()
        return engine
    }

    /// Time since this client was made.
    var now: Duration { origin.duration(to: .now) }

    nonisolated func request(_ request: ReloadRequest) {
        Task { await self.handle(.reloadRequested(request)) }
    }

    func tell(_ event: TimelineClientEvent) {
        configuration.observer?(event)
    }

    private func registration(recommendations: [RecommendationSet]) -> ClientRegistration {
        var counts: [WidgetInfo: Int] = [:]
        var order: [WidgetInfo] = []
        for info in widgets {
            if counts[info] == nil { order.append(info) }
            counts[info, default: 0] += 1
        }
        return ClientRegistration(
            platform: configuration.platform, osVersion: configuration.osVersion,
            attributes: configuration.attributes,
            widgets: order.map {
                ConfiguredWidget(
                    kind: $0.kind, family: $0.family.rawValue, parameters: $0.configuration,
                    count: counts[$0] ?? 1)
            },
            recommendations: recommendations, delivery: configuration.delivery)
    }

    private func save() {
        guard let archive, let engine else { return }
        let document = ArchiveDocument(
            owner: configuration.owner, state: engine.state, timelines: kept)
        do throws(ArchiveFile.Failure) {
            try archive.save(document)
        } catch {
            // The next save may succeed; until then a restart resumes from further back.
            tell(.archiveFailed(error))
        }
    }

    /// Sets the one timer to what is due first.
    private func reschedule() {
        let due = [engine?.nextWake, policyReloads.values.min()].compactMap { $0 }.min()
        if timer?.due == due, due != nil { return }
        timer?.task.cancel()
        timer = nil
        guard let due else { return }
        let task = Task {
            try? await Task.sleep(for: max(.zero, due - self.now))
            if !Task.isCancelled { self.timerFired() }
        }
        timer = (task, due)
    }

    private func timerFired() {
        timer = nil
        let due = policyReloads.filter { $0.value <= now }.keys
        for info in due {
            policyReloads[info] = nil
            handle(.reloadRequested(.timeline(info)))
        }
        handle(.woke)
    }
}
