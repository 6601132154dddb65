import Foundation
import Synchronization
import TimelineGatewayClient
import WidgetModel
import WidgetViews

/// Keeps the timelines of one client current: registers its widgets, receives notifications,
/// rebuilds exactly the content they name, and acknowledges it to the gateway.
///
/// A thin shell around a pure engine, which makes all decisions. Several clients may live in one
/// process; each has its own id and its own archive.
public actor TimelineClient {
    /// The last built timeline of each widget, as it was drawn, and one of each presentation of a
    /// Live Activity. Only these are shown.
    public internal(set) var timelines: [WidgetInfo: TimelineArchive] = [:]
    /// The relevant configurations of each placeable kind, from the last answer of its provider.
    /// Requested on watches, and on platforms other than Apple's.
    public internal(set) var relevance: [String: [RelevantConfiguration]] = [:]
    /// The drawing of each placed control that the app declares, by the control's id. The archive
    /// has the controls that a ``ClientRegistrar`` registered.
    public internal(set) var controls: [String: WidgetNode] = [:]

    let configuration: TimelineClientConfiguration
    let declared: WidgetDeclarations
    let service: GatewayService
    let verifier: any NotificationVerifying
    let archive: ClientArchive?
    let app: (any AppProcess)?
    let settings: ReloadEngine.Settings
    private let origin = ContinuousClock.now

    /// The placed widgets followed by the relevance widgets, which people do not place.
    var widgets: [WidgetInfo]
    /// The number of relevance requests to each kind's provider, to recognize outdated answers.
    var relevanceQuestions: [String: Int] = [:]
    /// The members other than widgets and recommendations that this process registered last, when
    /// it reconciled with a registration of another process of the app.
    var sharedRegistered: ClientRegistration?
    var engine: ReloadEngine?
    var serverTime = ServerTime()
    var interactions: PendingInteractions
    var pushInfo: WidgetPushInfo?
    /// Whether to poll the gateway once instead of holding a stream.
    var isOnePass = false
    var restWaiter: CheckedContinuation<Bool, Never>?
    /// The widgets whose archived timelines the lock hid when the run began.
    var unread: Set<WidgetInfo> = []
    var interactionTimer: Task<Void, Never>?
    var rebuildWaiters: [WidgetInfo: [RebuildWaiter]] = [:]
    /// The kinds of controls that are being drawn, each with whether to draw it once more.
    var drawingControls: [String: Bool] = [:]
    /// The kinds of controls that could not be drawn, and those that wait for their next attempt.
    var controlBackoffs: [String: Backoff] = [:]
    var retriedControls: Set<String> = []
    /// The configurations that ``controls`` were drawn with in this run.
    var drawnFrom: [String: [String: ParameterValue]] = [:]
    /// The Live Activities, for readers that cannot wait for this actor.
    nonisolated let activityStore = Mutex(KeptActivities())
    private var work: AsyncStream<Job>.Continuation?
    /// Keeps other processes from writing the archive while this one runs.
    private(set) var archiveLock: ArchiveLock?
    private var server: LocalServer?
    private var timer: (task: Task<Void, Never>, due: Duration)?

    /// Work that ends with the run.
    typealias Job = @Sendable () async -> Void

    /// Creates a client. It does nothing before ``run()``.
    ///
    /// - Parameters:
    ///   - archive: Stores the state that a restart needs to resume; without one it registers
    ///     and rebuilds everything.
    ///   - app: Performs intents meant for the app's process, and is opened by taps; without one
    ///     such intents fail.
    public init(
        configuration: TimelineClientConfiguration, widgets: WidgetDeclarations,
        connection: any GatewayConnection, verifier: any NotificationVerifying,
        archive: ClientArchive? = nil, app: (any AppProcess)? = nil
    ) {
        self.init(
            configuration: configuration, widgets: widgets, connection: connection,
            verifier: verifier, archive: archive, app: app,
            settings: configuration.engineSettings)
    }

    package init(
        configuration: TimelineClientConfiguration, widgets: WidgetDeclarations,
        connection: any GatewayConnection, verifier: any NotificationVerifying,
        archive: ClientArchive?, app: (any AppProcess)? = nil, settings: ReloadEngine.Settings
    ) {
        self.configuration = configuration
        self.declared = widgets
        self.service = GatewayService(connection: connection, app: configuration.app)
        self.verifier = verifier
        self.archive = archive
        self.app = app
        var settings = settings
        for kind in widgets.kinds {
            settings.protections[kind] = widgets.traits(ofKind: kind)?.dataProtection
        }
        if configuration.sharesClient {
            settings.ownKinds = Set(
                widgets.kinds + widgets.controls.map(\.kind) + widgets.activityTypes)
        }
        self.settings = settings
        self.widgets = Self.completed(
            configuration.widgets, widgets, on: configuration.device)
        interactions = PendingInteractions(timeout: configuration.interactionTimeout)
    }

    /// The API for an app that knows itself which widgets are stale.
    public nonisolated var widgetCenter: WidgetCenter { WidgetCenter(client: self) }

    /// The placed widgets, without those of a ``RelevanceConfiguration``, which people do not
    /// place.
    public var placedWidgets: [WidgetInfo] {
        widgets.filter { !declared.isRelevance(ofKind: $0.kind) }
    }

    /// The cursor up to which every change is applied; `nil` before the first registration.
    public var cursor: Cursor? { engine?.cursor }

    /// The earliest date at which any widget will be asked for its timeline, unless an event comes
    /// first; `nil` while no reload is scheduled.
    public var nextReload: Date? { engine?.nextReload }

    /// The date at which this widget will be asked for its timeline, unless an event comes first;
    /// `nil` while no reload of it is scheduled, or one is in progress.
    public func nextReload(of info: WidgetInfo) -> Date? { engine?.nextReload(of: info) }

    /// The app's current activity. While the app is active, no reload of its widgets counts towards
    /// their budgets.
    public private(set) var activity: AppActivity = []

    /// Sets the app's current activity; see ``activity``.
    public func set(activity: AppActivity) {
        self.activity = activity
        handle(.activityChanged(activity))
    }

    /// Whether the device is locked. While the files that a provider reads are protected, its
    /// timelines stay unchanged until the device is unlocked.
    public private(set) var lock = DeviceLock.unlocked

    /// Records that the device was locked or unlocked; see ``lock``.
    public func set(lock: DeviceLock) {
        self.lock = lock
        readWhatWasHidden()
        handle(.lockChanged(lock))
    }

    /// Rebuilds every timeline after a change of the system; counts towards no budget.
    public func systemChanged(_ change: ReloadReason.SystemChange) {
        handle(.reloadRequested(.all, .system(change)))
    }

    /// Replaces the placed widgets as a whole: registers them, builds new ones and removes those
    /// that are gone. Widgets with equal configuration appear once for each time they are placed.
    /// Reports the values that their intents do not accept.
    public func place(_ widgets: [WidgetInfo]) {
        let widgets = Self.completed(widgets, declared, on: configuration.device)
        let (placed, before) = (Set(widgets), Set(self.widgets))
        self.widgets = widgets
        if placed != before { tellPushHandlers() }
        guard isRunning else { return }
        reportFaults(of: placed.subtracting(before))
        let shown = archived
        timelines = timelines.filter { shown.contains($0.key) }
        interactions.place(shown)
        dropWaiters(except: placed)
        archivePlaceholders()
        handle(.configurationChanged(registration(recommendations: [])))
        archive?.keep(only: shown)
    }

    private func reportFaults(of widgets: Set<WidgetInfo>) {
        for widget in widgets {
            for fault in declared.faults(of: widget) { tell(.misconfigured(widget, fault)) }
        }
    }

    /// Runs until the calling task is cancelled, through all failures of the gateway and the
    /// network. A second call while one runs returns at once. If another process uses the archive,
    /// a call returns after 2 s and reports ``TimelineClientEvent/archiveFailed(_:)``.
    public func run() async {
        guard !isRunning else { return }
        guard await reserveArchive() else { return rest() }
        WidgetCenter.share(self)
        reportFaults(of: Set(widgets))
        let (jobs, continuation) = AsyncStream.makeStream(of: Job.self)
        work = continuation
        let (state, kept) = resume()
        let sets = recommendedKinds.compactMap { kind in
            state.registered?.recommendations.first { $0.kind == kind }
        }
        let unasked = recommendedKinds.filter { kind in !sets.contains { $0.kind == kind } }
        engine = ReloadEngine(
            state: state, desired: registration(recommendations: sets), unasked: unasked,
            settings: settings, seed: UInt64.random(in: .min ... .max))
        handle(.started(kept, lock: lock, activity: activity))
        // The recommendations may be from another version of the app.
        handle(.recommendationsInvalidated)
        listen()
        if WidgetDeclarations.heedsRelevance(configuration.device) {
            for kind in declared.kindsWithRelevance {
                start { await self.askForRelevance(ofKind: kind) }
            }
        }
        for (control, node) in archive?.drawnControls ?? []
        where declared.controls.contains(where: { $0.kind == control.kind }) {
            controls[control.id] = node
        }
        for control in declared.controls {
            start { await self.rebuildControls(ofKind: control.kind) }
        }
        await translating {
            await withDiscardingTaskGroup { group in
                // Bounded in effect: the engine never orders the same action twice at a time.
                for await job in jobs { group.addTask { await job() } }
                group.cancelAll()
            }
        }
        server?.end()
        server = nil
        interactionTimer?.cancel()
        timer?.task.cancel()
        await timer?.task.value
        timer = nil
        save()
        saveBudgets()
        work = nil
        engine = nil
        archiveLock = nil
        dropWaiters(except: [])
        rest()
    }

    /// Reserves the archive. Waits up to 2 s for an earlier run that is about to end. Returns
    /// whether no other process uses the archive.
    private func reserveArchive() async -> Bool {
        var attempts = 1
        while true {
            do throws(ClientArchive.Failure) {
                archiveLock = try archive?.lock("extension")
                return true
            } catch {
                if error.isInUse, attempts < 40,
                    (try? await Task.sleep(for: .milliseconds(50))) != nil
                {
                    attempts += 1
                    continue
                }
                tell(.archiveFailed(error))
                // Where nothing can be written, the client runs all the same.
                return !error.isInUse
            }
        }
    }

    /// Starts work that is cancelled when the run ends.
    func start(_ job: @escaping Job) { work?.yield(job) }

    /// Calls a function whose texts are translated for the person's locale.
    func translating<Result: Sendable>(_ body: () async throws -> Result) async rethrows -> Result {
        try await StringCatalog.$current.withValue(declared.strings) {
            try await StringCatalog.$locale.withValue(configuration.locale) { try await body() }
        }
    }

    private func listen() {
        guard configuration.acceptsRequests, let archive else { return }
        do {
            server = try LocalServer(path: archive.extensionSocket) { try await self.answer($0) }
        } catch {
            tell(.archiveFailed(.init("the widgets cannot be reached: \(error)")))
        }
    }

    /// Reads the archive. Returns the state of the last save, and the timelines that need no new
    /// build.
    private func resume() -> (EngineState, kept: [EngineEvent.KeptTimeline]) {
        var document =
            archive?.load(owner: configuration.owner)
            ?? StateDocument(owner: configuration.owner, appearance: configuration.appearance)
        document.state.budgets = archive?.loadBudgets(limit: settings.schedule.budgetLimit) ?? [:]
        for item in document.state.positions.keys {
            guard case .timeline(let info) = item, widgets.contains(info) else { continue }
            if isHidden(info) {
                if archive?.hasTimeline(of: info) == true { unread.insert(info) }
            } else {
                timelines[info] = (try? archive?.timeline(of: info)) ?? nil
            }
        }
        // A timeline without a stored position is of unknown age and must not be shown.
        for info in Set(widgets) where document.state.positions[.timeline(info)] == nil {
            archive?.remove(info)
        }
        resumeActivities()
        archive?.keep(only: archived)
        archivePlaceholders()
        var kept = timelines.map { info, timeline in
            EngineEvent.KeptTimeline(widget: info, reloadDate: timeline.reloadDate)
        }
        kept += unread.map { .init(widget: $0, reloadDate: nil) }
        kept += activities.list.map { .init(widget: $0.item, reloadDate: nil) }
        if document.appearance != configuration.appearance {
            // Drawings for another locale or text size are shown until they are built again.
            (kept, unread) = ([], [])
        }
        return (document.state, kept)
    }

    private func archivePlaceholders() {
        guard let archive else { return }
        for info in Set(widgets) {
            // A kind that the app does not declare has no placeholder; building it will report the
            // error.
            guard
                let drawn = try? declared.archivedPlaceholder(of: info, on: configuration.device)
            else { continue }
            do throws(ClientArchive.Failure) {
                try archive.save(placeholder: drawn)
            } catch {
                tell(.archiveFailed(error))
            }
        }
    }

    /// Whether the lock hides the widget's content, and therefore its timeline.
    private func isHidden(_ info: WidgetInfo) -> Bool {
        declared.traits(ofKind: info.kind)?.dataProtection.rebuildPermission(while: lock)
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

    /// The only way into the engine: passes an event in, then starts the resulting actions.
    @discardableResult
    func handle(_ event: EngineEvent) -> ReloadEngine? {
        guard let actions = engine?.handle(event, now: now, date: Date()) else { return nil }
        for action in actions {
            switch action {
            case .save: save()
            case .saveBudgets: saveBudgets()
            case .register, .reconcile, .connect, .build, .recommend, .acknowledge:
                start { await self.perform(action) }
            }
        }
        reschedule()
        restIfDone()
        return engine
    }

    func restIfDone() {
        if engine?.isAtRest == true, drawingControls.isEmpty { rest() }
    }

    var isConnected: Bool { engine?.isConnected ?? false }

    var isRunning: Bool { engine != nil }

    /// The time since this client was created.
    var now: Duration { origin.duration(to: .now) }

    func tell(_ event: TimelineClientEvent) {
        configuration.observer?(event)
    }

    private var recommendedKinds: [String] {
        WidgetDeclarations.recommends(on: configuration.device?.platform)
            ? declared.recommendedKinds : []
    }

    func registration(recommendations: [RecommendationSet]) -> ClientRegistration {
        var counts: [WidgetInfo: Int] = [:]
        var order: [WidgetInfo] = []
        for info in widgets {
            if counts[info] == nil { order.append(info) }
            counts[info, default: 0] += 1
        }
        var registration = ClientRegistration(
            platform: configuration.platform, osVersion: configuration.osVersion,
            attributes: configuration.attributes,
            widgets: order.map {
                ConfiguredWidget(
                    kind: $0.kind, family: $0.family.rawValue, parameters: $0.configuration,
                    count: counts[$0] ?? 1)
            },
            recommendations: recommendations, delivery: configuration.delivery)
        var environment = "production"
        for case .apns(let push) in configuration.delivery { environment = push.environment }
        activities.add(to: &registration, configuration.sharesClient ? nil : environment)
        return registration
    }

    private func save() {
        guard let archive, let engine else { return }
        let document = StateDocument(
            owner: configuration.owner, appearance: configuration.appearance, state: engine.state)
        do throws(ClientArchive.Failure) {
            try archive.save(document)
        } catch {
            // The next save may succeed; until then a restart resumes from an earlier state.
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

    private func reschedule() {
        let due = engine?.nextWake
        if timer?.due == due, due != nil { return }
        timer?.task.cancel()
        timer = nil
        guard let due else { return }
        let task = Task {
            try? await Task.sleep(for: max(.zero, due - self.now))
            guard !Task.isCancelled else { return }
            self.timer = nil
            self.handle(.woke)
        }
        timer = (task, due)
    }
}
