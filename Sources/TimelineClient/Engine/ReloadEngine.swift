import Foundation
import WidgetModel

/// Decides what one client registers, asks, rebuilds and acknowledges. Owns no connection, task,
/// file or clock: events and the time go in, orders come out, and equal inputs give equal orders.
/// When what is stale is built is its ``ReloadScheduler``'s to say, by reasons and budgets.
///
/// The argument it rests on: a build that starts now fetches data at least as new as every id the
/// gateway has sent, for changes are posted once they can be read. So what is built takes the
/// cursor known when its build started, and while nothing sent since concerns it, the newest id.
/// What is stale keeps its old cursor; the client resumes from the lowest, and hears of it again.
package struct ReloadEngine: Sendable {
    /// Waits and bounds.
    package struct Settings: Sendable, Equatable {
        /// First wait after a stream, request or registration failed, before jitter.
        package var retryBase: Duration = .seconds(1)
        /// Longest wait of those.
        package var retryCap: Duration = .seconds(60)
        /// Patches of a registration that follow each other without a wait, while what is read
        /// between them lacks something.
        package var patchesMax = 3
        /// First wait after a provider failed.
        package var buildRetryBase: Duration = .seconds(5)
        /// Longest wait after a provider failed.
        package var buildRetryCap: Duration = .seconds(300)
        /// Wait between two polls.
        package var pollInterval: Duration = .seconds(900)
        /// While an intent of a widget is performed, its own change may come back: the widget is not
        /// built before the intent returns, which asks for it, or for so long.
        package var interactionMax: Duration = .seconds(10)
        /// Providers asked at the same time.
        package var buildsMax = 4
        /// How the files are protected that providers of a kind read; of kinds that are not here, as
        /// by default.
        package var protections: [String: DataProtection] = [:]
        /// Of reloads. A notification is honoured as soon as it comes, within the budget, and waits
        /// for no other widget.
        package var schedule: ReloadScheduler.Settings
        /// Ids alone are written to the archive no more often than this: losing some of them only
        /// means to be told again.
        package var idleSaveInterval: Duration = .seconds(300)

        /// The defaults.
        package init() {
            schedule = ReloadScheduler.Settings()
            schedule.requestIntervalMin = 0
            schedule.batchWindow = 0
        }
    }

    enum Link: Sendable, Equatable {
        /// Not asked, or not allowed before the registration is in force.
        case idle
        /// A stream or poll of the current attempt is open or being opened.
        case active
        /// Not before this moment.
        case waiting(until: Duration)
    }

    enum Registering: Sendable, Equatable {
        /// None is under way.
        case idle
        /// This one, sets without `builtAt`.
        case sending(ClientRegistration)
        /// Not before this moment, unless the configuration changes.
        case waiting(until: Duration)
    }

    let settings: Settings
    var desired: ClientRegistration
    /// Kinds whose recommendations are not known: an empty set would say that people configure the
    /// widget themselves. Each is asked for when the client is registered, and registered then.
    var unasked: [String]
    var registered: ClientRegistration?
    /// Stands for the registration that the gateway is believed to have in force: to be sent with
    /// every stream, poll and acknowledgement.
    package var digest: String?
    /// Whether the registration in force has to be read before anything else is asked: it is not
    /// the one that this client believed in force, or a patch was all that was sent of it.
    var mustReadRegistration = false
    /// Patches taken since the registration in force was last known to lack nothing.
    var patches = 0
    /// The attempt before this one was refused for that.
    var wasRegisteredOtherwise = false
    var records: [Archived: EngineRecord] = [:]
    /// Every key of `records`, so that equal inputs give equal orders.
    var order: [Archived] = []
    var scheduler: ReloadScheduler
    var lock = DeviceLock.unlocked
    /// Widgets whose intent is being performed, and until when they wait for that.
    var interacting: [WidgetInfo: Duration] = [:]
    /// Until the run begins.
    var resumedBudgets: [WidgetInfo: ReloadBudget]

    /// Everything up to here that concerns this client has been handed in.
    var heard: Cursor?
    /// Of the log that the current connection tells of; `nil` while that is not known.
    var logEpoch: EpochID?
    var link = Link.idle
    /// What the current attempt was told to resume from.
    var asked: Cursor?
    /// What it was answered to be resumed from.
    var resumed: Cursor?
    var attempt = 0
    /// A poll was read to its end.
    package var hasPolled = false
    var registering = Registering.idle
    var linkBackoff: Backoff
    var verificationBackoff: Backoff
    var registrationBackoff: Backoff

    /// What is to be told with the next acknowledgement.
    var reports = Acknowledgement()
    var acknowledging: Acknowledgement?
    var acknowledgeNotBefore: Duration?
    var acknowledgementBackoff: Backoff
    /// Newest sequence a notification spoke of that no acknowledgement has covered.
    var owedSequence: UInt64?

    var generator: JitterGenerator
    /// Time since any fixed moment, which no one sets.
    var now: Duration = .zero
    /// What the device's clock says.
    var date = Date.distantPast
    var lastSave: Duration = .zero
    var mustSave = false
    var mustSaveBudgets = false
    var actions: [EngineAction] = []

    /// An engine that resumes from what an archive kept.
    ///
    /// - Parameters:
    ///   - desired: What the app wants registered; `builtAt` of its sets is ignored.
    ///   - unasked: Kinds with a recommendation set that is not known yet, and none in `desired`.
    ///   - seed: All jitter follows from it.
    package init(
        state: EngineState, desired: ClientRegistration, unasked: [String] = [],
        settings: Settings = Settings(), seed: UInt64
    ) {
        self.settings = settings
        self.desired = Self.withoutBuiltAt(desired)
        self.unasked = unasked
        registered = state.registered
        digest = state.digest
        mustReadRegistration = state.mustReadRegistration
        heard = state.cursor
        linkBackoff = Backoff(base: settings.retryBase, cap: settings.retryCap)
        verificationBackoff = linkBackoff
        registrationBackoff = linkBackoff
        acknowledgementBackoff = linkBackoff
        generator = JitterGenerator(seed: seed)
        scheduler = ReloadScheduler(settings: settings.schedule)
        resumedBudgets = state.budgets
        for (item, position) in state.positions {
            records[item] = EngineRecord(
                cursor: position.cursor, awaitsBuild: position.awaitsBuild,
                isStale: position.awaitsBuild)
        }
        reconcile()
    }

    /// What has to be in the archive for a restart to resume from here.
    package var state: EngineState {
        var positions: [Archived: EngineState.Position] = [:]
        for (item, record) in records where !record.isRemoved {
            guard let cursor = record.cursor else { continue }
            positions[item] = .init(cursor: cursor, awaitsBuild: record.awaitsBuild)
        }
        return EngineState(
            registered: registered, digest: digest, mustReadRegistration: mustReadRegistration,
            position: heard, positions: positions, budgets: budgets)
    }

    var budgets: [WidgetInfo: ReloadBudget] {
        resumedBudgets.isEmpty ? scheduler.records.mapValues(\.budget) : resumedBudgets
    }

    /// The lowest position of all: what the client acknowledges.
    var applied: Cursor? {
        records.values.lazy.filter { !$0.isRemoved }.compactMap(\.cursor).min() ?? heard
    }

    /// What the client resumes from. After an interaction timelines may be ahead of what was heard;
    /// what is told beside them, such as relevance, is not.
    package var cursor: Cursor? { applied.map { min($0, heard ?? $0) } }

    /// Whether everything that can be done now is: nothing is under way, and the next thing waits for
    /// its time, or for something to happen.
    package var isAtRest: Bool {
        guard isSettled, acknowledging == nil else { return false }
        switch (registering, link) {
        case (.sending, _), (_, .active), (.idle, .idle): return false
        case (.waiting, .idle), (.idle, .waiting), (.waiting, .waiting): return true
        }
    }

    /// Whether a stream or poll is open, and a registration in force.
    package var isConnected: Bool { registered != nil && link == .active }

    /// Whether this attempt is the one under way; a stream of another is to be closed.
    package func isCurrent(attempt: Int) -> Bool {
        attempt == self.attempt && link == .active
    }

    /// Takes what happened and says what to do.
    ///
    /// - Parameters:
    ///   - now: Time since any fixed moment, never less than before.
    ///   - date: What the device's clock says: it may be set at any time.
    package mutating func handle(
        _ event: EngineEvent, now: Duration, date: Date
    ) -> [EngineAction] {
        self.now = max(self.now, now)
        clockStands(at: date)
        switch event {
        case .started(let kept, let lock, let activity):
            self.lock = lock
            scheduler.activity = activity
            started(kept)
        case .woke: break
        case .configurationChanged(let registration): configurationChanged(registration)
        case .registered(let cursor, let digest): didRegister(at: cursor, digest)
        case .patched(let cursor): didPatch(at: cursor)
        case .registrationFailed(let refusal): registrationFailed(refusal)
        case .opened(let attempt, let resumed): opened(attempt, resumedFrom: resumed)
        case .notification(let attempt, let notification): heardOf(notification, attempt)
        case .verificationFailed(let attempt): verificationFailed(attempt)
        case .idMoved(let attempt, let cursor): idMoved(attempt, to: cursor)
        case .retryHint(let wait):
            linkBackoff.base = min(max(wait, .milliseconds(100)), settings.retryCap)
        case .ended(let attempt, let ending): ended(attempt, ending)
        case .rebuilt(let info, let milliseconds, let reloadDate):
            rebuilt(info, milliseconds, reloadDate)
        case .buildFailed(let info, let reason): buildFailed(info, reason)
        case .recommended(let kind, let items): recommended(kind, items)
        case .recommendFailed(let kind): recommendFailed(kind)
        case .acknowledged: acknowledged()
        case .acknowledgementFailed(let refusal): acknowledgementFailed(refusal)
        case .reloadRequested(let request, let reason): requested(request, reason)
        case .interacting(let info): interacting[info] = self.now + settings.interactionMax
        case .interacted(let info, let cursor): interacted(info, at: cursor)
        case .recommendationsInvalidated: recommendationsInvalidated()
        case .activityChanged(let activity): scheduler.activity = activity
        case .lockChanged(let lock): lockChanged(lock)
        case .unhidden(let timeline): unhidden(timeline)
        }
        orderRegistration()
        orderBuilds()
        orderConnection()
        orderAcknowledgement()
        defer { actions.removeAll(keepingCapacity: true) }
        var saves: [EngineAction] = []
        if mustSave {
            mustSave = false
            lastSave = self.now
            saves.append(.save)
        }
        if mustSaveBudgets {
            mustSaveBudgets = false
            saves.append(.saveBudgets)
        }
        return saves + actions
    }

    /// When `woke` has to be handed in, unless something else is before.
    package var nextWake: Duration? {
        var moments: [Duration] = []
        if case .waiting(let until) = link { moments.append(until) }
        if case .waiting(let until) = registering { moments.append(until) }
        if let acknowledgeNotBefore, acknowledging == nil { moments.append(acknowledgeNotBefore) }
        if let nextLook { moments.append(nextLook) }
        moments += records.values.compactMap(\.retryAt)
        moments += interacting.values
        // What is due already waits for something else than time: waking would only spin.
        return moments.filter { $0 > now }.min()
    }
}
