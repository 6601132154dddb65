import Foundation
import WidgetModel
import WidgetViews

/// Decides when one client registers, connects, rebuilds and acknowledges. Owns no connection,
/// task, file or clock: events and the time go in, orders come out, and equal inputs give equal
/// orders. Its ``ReloadScheduler`` decides by reasons and budgets when a stale timeline is built.
///
/// The underlying argument: changes are posted once they can be read, so a build that starts now
/// fetches data at least as new as every id the gateway has sent. A built item therefore takes the
/// cursor known when its build started, and advances to the newest id while no later notification
/// concerns it. A stale item keeps its old cursor; the client resumes from the lowest cursor, so
/// that the gateway sends the notification again.
package struct ReloadEngine: Sendable {
    package struct Settings: Sendable, Equatable {
        /// The first wait after a stream, request or registration failed, before jitter.
        package var retryBase: Duration = .seconds(1)
        package var retryCap: Duration = .seconds(60)
        /// The number of consecutive patches of a registration without a wait, while each reading
        /// shows that something is still missing.
        package var patchesMax = 3
        package var buildRetryBase: Duration = .seconds(5)
        package var buildRetryCap: Duration = .seconds(300)
        package var pollInterval: Duration = .seconds(900)
        /// The longest time that a widget's builds wait for its intent. The intent's own
        /// change may come back as a notification; the intent requests a build when it returns.
        package var interactionMax: Duration = .seconds(10)
        package var buildsMax = 4
        /// The data protection of the files that the providers of a kind read; the default applies
        /// to kinds that are not listed.
        package var protections: [String: DataProtection] = [:]
        /// The kinds that this process declares, if other processes declare others for the same
        /// client; `nil` if no process shares the client. Only notifications that name one of these
        /// kinds are acknowledged.
        package var ownKinds: Set<String>?
        /// The scheduler's settings. By default a notification is acted on as soon as it arrives,
        /// within the budget, and does not wait for other widgets.
        package var schedule: ReloadScheduler.Settings
        /// The shortest interval between saves for ids alone. Losing ids only means that some
        /// notifications are repeated.
        package var idleSaveInterval: Duration = .seconds(300)

        package init() {
            schedule = ReloadScheduler.Settings()
            schedule.requestIntervalMin = 0
            schedule.batchWindow = 0
        }
    }

    /// The streams and polls, one after the other, and what they brought.
    struct Link: Sendable {
        enum State: Sendable, Equatable {
            /// Not connected, or not allowed to before the registration is in force.
            case idle
            /// A stream or poll of the current attempt is open or being opened.
            case active
            case waiting(until: Duration)
        }

        var state = State.idle
        var attempt = 0
        /// Whether a poll was read to its end.
        var hasPolled = false
        /// The cursor up to which every notification for this client has been received.
        var receivedCursor: Cursor?
        /// The highest sequence of a notification on the current connection; `nil` before one.
        var heardSequence: UInt64?
        /// The epoch of the log that the current connection reports; `nil` while unknown.
        var logEpoch: EpochID?
        var requestedCursor: Cursor?
        /// The cursor that the gateway actually resumed at.
        var resumedCursor: Cursor?
        var backoff: Backoff
        var verificationBackoff: Backoff
    }

    /// The acknowledgements to the gateway.
    struct Acknowledging: Sendable {
        /// The content of the next acknowledgement.
        var reports = Acknowledgement()
        /// The acknowledgement in flight.
        var sent: Acknowledgement?
        var notBefore: Duration?
        /// The newest sequence of a notification that no acknowledgement has covered.
        var owedSequence: UInt64?
        var backoff: Backoff
    }

    enum Registering: Sendable, Equatable {
        case idle
        /// This registration is in flight, its sets without `builtAt`.
        case sending(ClientRegistration)
        /// Not to be sent before this time, unless the configuration changes.
        case waiting(until: Duration)
    }

    let settings: Settings
    var desired: ClientRegistration
    /// The kinds whose recommendations have not been read. Each is requested once the client is
    /// registered, and registered when it is read: an empty set would mean that people configure
    /// the widget themselves.
    var unasked: [String]
    var registered: ClientRegistration?
    /// The digest of the registration that this client expects to be in force; sent with every
    /// stream, poll and acknowledgement.
    package var digest: String?
    /// Whether the registration in force must be read before any other request: it is not the
    /// expected one, or only a patch of it was sent.
    var mustReadRegistration = false
    /// The number of accepted patches since the registration in force was last known to be
    /// complete.
    var patches = 0
    var wasRegisteredOtherwise = false
    var records: [EngineItem: EngineRecord] = [:]
    /// Every key of `records` in a fixed order, so that equal inputs give equal orders.
    var order: [EngineItem] = []
    var scheduler: ReloadScheduler
    var lock = DeviceLock.unlocked
    /// The widgets whose intent is being performed, each with the time at which its builds stop
    /// waiting.
    var interacting: [WidgetInfo: Duration] = [:]
    /// The budgets from the archive, until the run begins.
    var resumedBudgets: [WidgetInfo: ReloadBudget]

    var registering = Registering.idle
    var registrationBackoff: Backoff
    var link: Link
    var acks: Acknowledging

    var generator: SplitMix64
    /// Time since any fixed moment, which no one sets.
    var now: Duration = .zero
    var date = Date.distantPast
    var lastSave: Duration = .zero
    var mustSave = false
    var mustSaveBudgets = false
    var actions: [EngineAction] = []

    /// Creates an engine that resumes from an archived state.
    ///
    /// - Parameters:
    ///   - desired: The registration that the app wants; `builtAt` of its sets is ignored.
    ///   - unasked: The kinds whose recommendation set has not been read, and is not in `desired`.
    ///   - seed: The seed of all jitter.
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
        let backoff = Backoff(base: settings.retryBase, cap: settings.retryCap)
        registrationBackoff = backoff
        link = Link(backoff: backoff, verificationBackoff: backoff)
        acks = Acknowledging(backoff: backoff)
        link.receivedCursor = state.cursor
        generator = SplitMix64(seed: seed)
        scheduler = ReloadScheduler(settings: settings.schedule)
        resumedBudgets = state.budgets
        for (item, position) in state.positions {
            records[item] = EngineRecord(
                cursor: position.cursor, awaitsBuild: position.awaitsBuild,
                isStale: position.awaitsBuild)
        }
        reconcile()
    }

    /// The state that must be archived for a restart to resume from here.
    package var state: EngineState {
        var positions: [EngineItem: EngineState.Position] = [:]
        for (item, record) in records where !record.isRemoved {
            guard let cursor = record.cursor else { continue }
            positions[item] = .init(cursor: cursor, awaitsBuild: record.awaitsBuild)
        }
        return EngineState(
            registered: registered, digest: digest, mustReadRegistration: mustReadRegistration,
            position: link.receivedCursor, positions: positions, budgets: budgets)
    }

    var budgets: [WidgetInfo: ReloadBudget] {
        resumedBudgets.isEmpty ? scheduler.records.mapValues(\.budget) : resumedBudgets
    }

    /// The lowest position of all items: the cursor that the client acknowledges.
    var appliedCursor: Cursor? {
        records.values.lazy.filter { !$0.isRemoved }.compactMap(\.cursor).min()
            ?? link.receivedCursor
    }

    /// The cursor that the client resumes at. After an interaction, timelines may be ahead of
    /// the received notifications; other parts of those notifications, such as relevance, are not.
    package var cursor: Cursor? { appliedCursor.map { min($0, link.receivedCursor ?? $0) } }

    /// Whether nothing is in progress, and all remaining work waits for its time or for an event.
    package var isAtRest: Bool {
        guard isSettled, acks.sent == nil else { return false }
        switch (registering, link.state) {
        case (.sending, _), (_, .active), (.idle, .idle): return false
        case (.waiting, .idle), (.idle, .waiting), (.waiting, .waiting): return true
        }
    }

    /// Whether a stream or poll is open, and a registration in force.
    package var isConnected: Bool { registered != nil && link.state == .active }

    /// Returns whether this attempt is the current one; a stream of any other must be closed.
    package func isCurrent(attempt: Int) -> Bool {
        attempt == link.attempt && link.state == .active
    }

    /// Applies an event and returns the resulting orders.
    ///
    /// - Parameters:
    ///   - now: The time since a fixed moment; it never decreases.
    ///   - date: The date according to the device's clock, which may be set at any time.
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
            link.backoff.rebase(wait)
        case .ended(let attempt, let ending): ended(attempt, ending)
        case .rebuilt(let info, let milliseconds, let reloadDate, let isUnchanged):
            rebuilt(info, milliseconds, reloadDate, isUnchanged: isUnchanged)
        case .buildFailed(let info, let reason): buildFailed(info, reason)
        case .recommended(let kind, let items): recommended(kind, items)
        case .recommendFailed(let kind): recommendFailed(kind)
        case .acknowledged:
            acks.sent = nil
            acks.backoff.succeeded()
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

    /// The time at which `woke` must be reported, unless another event comes first.
    package var nextWake: Duration? {
        var moments: [Duration] = []
        if case .waiting(let until) = link.state { moments.append(until) }
        if case .waiting(let until) = registering { moments.append(until) }
        if let notBefore = acks.notBefore, acks.sent == nil { moments.append(notBefore) }
        if let nextLook { moments.append(nextLook) }
        moments += records.values.compactMap(\.retryAt)
        moments += interacting.values
        // Work that is already due waits for something other than time; waking for it would only
        // spin.
        return moments.filter { $0 > now }.min()
    }
}
