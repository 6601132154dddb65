import Foundation
import WidgetModel

/// Keeps the timelines of one client current: registers its widgets, listens for notifications,
/// rebuilds exactly what they name, and tells the gateway what it has done.
///
/// It is the thin shell around a pure engine, which decides. Several clients may live in one
/// process; each has its own id and its own archive.
public actor TimelineClient {
    /// What was built last, by widget, as it was drawn: all that is shown of it.
    public internal(set) var timelines: [WidgetInfo: TimelineArchive] = [:]
    /// When which configurations of a kind are relevant that people place, as its provider said last;
    /// asked for on watches, and on platforms that are not Apple's.
    public internal(set) var relevance: [String: [RelevantConfiguration]] = [:]

    let configuration: TimelineClientConfiguration
    let runtime: WidgetRuntime
    let service: GatewayService
    let verifier: any NotificationVerifying
    let archive: ClientArchive?
    let app: (any AppProcess)?
    let settings: ReloadEngine.Settings
    private let origin = ContinuousClock.now

    /// What is placed, and the widgets that nobody places.
    var widgets: [WidgetInfo]
    /// How often each kind's provider was asked for it.
    var relevanceQuestions: [String: Int] = [:]
    /// What this process registered last of the members that it shares with others of the app,
    /// because another registration was in force.
    var sharedRegistered: ClientRegistration?
    var engine: ReloadEngine?
    var serverTime = ServerTime()
    var interactions: WidgetInteractions
    var pushInfo: WidgetPushInfo?
    /// Asks the gateway once instead of listening to it.
    var isOnePass = false
    var restWaiter: CheckedContinuation<Bool, Never>?
    /// Timelines that the lock hid when the run began.
    var unread: Set<WidgetInfo> = []
    var interactionTimer: Task<Void, Never>?
    var rebuildWaiters: [WidgetInfo: [RebuildWaiter]] = [:]
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
    ///   - app: What performs intents that are for the app's process, and is opened by taps; without
    ///     one such intents fail.
    public init(
        configuration: TimelineClientConfiguration, widgets: WidgetRuntime,
        connection: any GatewayConnection, verifier: any NotificationVerifying,
        archive: ClientArchive? = nil, app: (any AppProcess)? = nil
    ) {
        self.init(
            configuration: configuration, widgets: widgets, connection: connection,
            verifier: verifier, archive: archive, app: app,
            settings: configuration.engineSettings)
    }

    /// A client with waits and bounds of the caller's choice.
    package init(
        configuration: TimelineClientConfiguration, widgets: WidgetRuntime,
        connection: any GatewayConnection, verifier: any NotificationVerifying,
        archive: ClientArchive?, app: (any AppProcess)? = nil, settings: ReloadEngine.Settings
    ) {
        self.configuration = configuration
        self.runtime = widgets
        self.service = GatewayService(connection: connection, app: configuration.app)
        self.verifier = verifier
        self.archive = archive
        self.app = app
        var settings = settings
        for kind in widgets.kinds {
            settings.protections[kind] = widgets.traits(ofKind: kind)?.dataProtection
        }
        self.settings = settings
        self.widgets = Self.completed(
            configuration.widgets, widgets, on: configuration.device)
        interactions = WidgetInteractions(timeout: configuration.interactionTimeout)
    }

    /// The calls an app makes when it knows itself what is stale.
    public nonisolated var widgetCenter: WidgetCenter { WidgetCenter(client: self) }

    /// The widgets that are placed; not those of a ``RelevanceConfiguration``, which nobody places.
    public var placedWidgets: [WidgetInfo] {
        widgets.filter { !runtime.isRelevance(ofKind: $0.kind) }
    }

    /// Everything up to here is applied; `nil` before the first registration.
    public var cursor: Cursor? { engine?.cursor }

    /// When a widget will next be asked for its timeline, unless something happens before; `nil`
    /// while nothing is known that will ask.
    public var nextReload: Date? { engine?.nextReload }

    /// When this widget will next be asked for its timeline, unless something happens before; `nil`
    /// while nothing is known that will ask, or it is being asked.
    public func nextReload(of info: WidgetInfo) -> Date? { engine?.nextReload(of: info) }

    /// What the app does at the moment: while it is active, no reload of its widgets counts towards
    /// their budgets.
    public private(set) var activity: AppActivity = []

    /// Tells what the app does now; see ``activity``.
    public func set(activity: AppActivity) {
        self.activity = activity
        handle(.activityChanged(activity))
    }

    /// Whether the device is locked. Where the files are protected that a provider reads, its
    /// timelines stay as they are until the person unlocks the device.
    public private(set) var lock = DeviceLock.unlocked

    /// Tells that the device was locked or unlocked; see ``lock``.
    public func set(lock: DeviceLock) {
        self.lock = lock
        readWhatWasHidden()
        handle(.lockChanged(lock))
    }

    /// Rebuilds every timeline for a change of the system, which counts towards no budget.
    public func systemChanged(_ change: ReloadReason.SystemChange) {
        handle(.reloadRequested(.all, .system(change)))
    }

    /// Takes what people have placed now, as a whole: registers it, builds what is new and forgets
    /// what is gone. Widgets configured alike stand in the list as often as they are placed.
    public func place(_ widgets: [WidgetInfo]) {
        let widgets = Self.completed(widgets, runtime, on: configuration.device)
        let isChanged = Set(widgets) != Set(self.widgets)
        self.widgets = widgets
        if isChanged { tellPushHandlers() }
        guard isRunning else { return }
        let placed = Set(widgets)
        timelines = timelines.filter { placed.contains($0.key) }
        interactions.place(placed)
        dropWaiters(except: placed)
        archivePlaceholders()
        handle(.configurationChanged(registration(recommendations: [])))
        archive?.keep(only: placed)
    }

    /// Runs until the calling task is cancelled; survives everything the gateway and the network
    /// do. A second call while one runs returns at once.
    public func run() async {
        guard !isRunning else { return }
        let (actions, continuation) = AsyncStream.makeStream(of: EngineAction.self)
        work = continuation
        let state = resume()
        let sets = recommendedKinds.compactMap { kind in
            state.registered?.recommendations.first { $0.kind == kind }
        }
        let unasked = recommendedKinds.filter { kind in !sets.contains { $0.kind == kind } }
        engine = ReloadEngine(
            state: state, desired: registration(recommendations: sets), unasked: unasked,
            settings: settings, seed: UInt64.random(in: .min ... .max))
        await withDiscardingTaskGroup { group in
            handle(.started(keptTimelines, lock: lock, activity: activity))
            // The app may be another version than the one that recommended them.
            handle(.recommendationsInvalidated)
            if WidgetRuntime.heedsRelevance(configuration.device) {
                for kind in runtime.kindsWithRelevance {
                    group.addTask { await self.askForRelevance(ofKind: kind) }
                }
            }
            // Not unbounded: the engine orders each thing once at a time.
            for await action in actions {
                group.addTask { await self.perform(action) }
            }
            group.cancelAll()
        }
        interactionTimer?.cancel()
        timer?.task.cancel()
        await timer?.task.value
        timer = nil
        save()
        saveBudgets()
        work = nil
        engine = nil
        dropWaiters(except: [])
        rest()
    }

    /// Reads the archive.
    ///
    /// - Returns: How far the client was.
    private func resume() -> EngineState {
        var document =
            archive?.load(owner: configuration.owner)
            ?? ArchiveDocument(owner: configuration.owner)
        document.state.budgets = archive?.loadBudgets(limit: settings.schedule.budgetLimit) ?? [:]
        for item in document.state.positions.keys {
            guard case .timeline(let info) = item, widgets.contains(info) else { continue }
            if isHidden(info) {
                if archive?.hasTimeline(of: info) == true { unread.insert(info) }
            } else {
                timelines[info] = (try? archive?.timeline(of: info)) ?? nil
            }
        }
        // What nothing says the age of is not shown.
        for info in Set(widgets) where document.state.positions[.timeline(info)] == nil {
            archive?.remove(info)
        }
        archive?.keep(only: Set(widgets))
        archivePlaceholders()
        return document.state
    }

    private func archivePlaceholders() {
        guard let archive else { return }
        for info in Set(widgets) {
            // A kind that the app does not declare has none; to build it will say so.
            guard
                let drawn = try? runtime.archivedPlaceholder(of: info, on: configuration.device)
            else { continue }
            do throws(ClientArchive.Failure) {
                try archive.save(placeholder: drawn)
            } catch {
                tell(.archiveFailed(error))
            }
        }
    }

    private var keptTimelines: [EngineEvent.KeptTimeline] {
        timelines.map { .init(widget: $0.key, reloadDate: $0.value.reloadDate) }
            + unread.map { .init(widget: $0, reloadDate: nil) }
    }

    /// Whether the lock hides the widget's content, and its timeline with it.
    private func isHidden(_ info: WidgetInfo) -> Bool {
        runtime.traits(ofKind: info.kind)?.dataProtection.rebuildPermission(while: lock)
            == .afterUnlock
    }

    private func readWhatWasHidden() {
        for info in unread where !isHidden(info) {
            unread.remove(info)
            guard widgets.contains(info), timelines[info] == nil else { continue }
            if let timeline = (try? archive?.timeline(of: info)) ?? nil {
                timelines[info] = timeline
                handle(.unhidden(.init(widget: info, reloadDate: timeline.reloadDate)))
            } else {
                handle(.reloadRequested(.timeline(info), .placeholder))
            }
        }
    }

    /// The only way into the engine: decides, then orders what was decided.
    @discardableResult
    func handle(_ event: EngineEvent) -> ReloadEngine? {
        guard let actions = engine?.handle(event, now: now, date: Date()) else { return nil }
        for action in actions {
            switch action {
            case .save: save()
            case .saveBudgets: saveBudgets()
            case .register, .reconcile, .connect, .build, .recommend, .acknowledge:
                work?.yield(action)
            }
        }
        reschedule()
        if engine?.isAtRest == true { rest() }
        return engine
    }

    /// Whether the gateway was there when it was last heard of.
    var isConnected: Bool { engine?.isConnected ?? false }

    var isRunning: Bool { engine != nil }

    /// Time since this client was made.
    var now: Duration { origin.duration(to: .now) }

    nonisolated func request(_ event: EngineEvent) {
        Task { await self.handle(event) }
    }

    func tell(_ event: TimelineClientEvent) {
        configuration.observer?(event)
    }

    /// The kinds whose sets are registered.
    private var recommendedKinds: [String] {
        WidgetRuntime.recommends(on: configuration.device?.platform) ? runtime.recommendedKinds : []
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
        let document = ArchiveDocument(owner: configuration.owner, state: engine.state)
        do throws(ClientArchive.Failure) {
            try archive.save(document)
        } catch {
            // The next save may succeed; until then a restart resumes from further back.
            tell(.archiveFailed(error))
        }
    }

    private func saveBudgets() {
        guard let archive, let engine else { return }
        do throws(ClientArchive.Failure) {
            try archive.saveBudgets(engine.state.budgets)
        } catch {
            tell(.archiveFailed(error))
        }
    }

    /// Sets the one timer to what is due first.
    private func reschedule() {
        let due = engine?.nextWake
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
        handle(.woke)
    }
}
