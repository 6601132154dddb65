import CatalogModel
import WidgetModel

/// The state of one event loop: rule sets, versions, the live index and its open streams. Not
/// shared; it applies the log in sequence order, without gaps.
///
/// It has no I/O, task, lock or clock: `now` is the caller's monotonic time, ms, and the data to
/// send is left in ``output``.
package struct Shard: Sendable {
    /// The sequence of the last applied log entry.
    package internal(set) var position: UInt64
    /// The data to send; the caller sends it and calls ``clearOutput()``.
    package internal(set) var output = ShardOutput()
    package internal(set) var openStreams = 0
    /// The number of bumped keys with dependent streams that waited for the end of a collapse
    /// window.
    package private(set) var collapsed: UInt64 = 0

    let limits: CoreLimits
    private var appNumbers: [String: Int] = [:]
    var apps: [AppState] = []
    /// The free indices in ``apps``.
    private var freePlaces: [Int] = []
    /// The keys to notify now for the change being applied; stored to reuse its memory.
    private var firing: [FiringKey] = []
    var streams: [StreamRecord] = []
    var subscriptions: [StreamSubscription?] = []
    var freeSlots: [UInt32] = []
    private var floor: UInt64
    /// The changes that notifications were sent for, for keys that collapse.
    var notified = RecentChanges(raisesMax: 16_384)

    struct AppState {
        let name: String
        var ruleSet: RuleSet
        /// The sequence of the app's first catalog.
        let birth: UInt64
        var versions: VersionWindow
        var index: SubscriptionIndex
        var collapse: CollapseWindow
        var streams: [UInt32] = []
        /// The slot of each client's most recently opened stream.
        var clients: [String: UInt32] = [:]
        /// The collapse time of each rule, ms.
        var durations: [Int64]
        /// Whether the app was removed while some of its streams have not closed yet.
        var isGone = false
    }

    /// A bumped key by its index, with the slot of its rule and the keys that it affects.
    typealias FiringKey = (place: InvalidatedKeys.Index, rule: Int, reach: SubscriptionIndex.Reach)

    /// Creates a shard that has applied nothing and knows nothing of entries up to `floor`.
    package init(floor: UInt64, limits: CoreLimits = CoreLimits()) {
        position = floor
        self.floor = floor
        self.limits = limits
    }

    /// The versions of an app that begins.
    private var emptyWindow: VersionWindow {
        VersionWindow(
            floor: floor, keysMax: limits.versionKeysMax, runKeys: limits.versionRunKeys)
    }

    /// Installs a catalog that is older than the log tail the shard is about to apply. No effect on
    /// an app that the shard has.
    package mutating func install(_ ruleSet: RuleSet) {
        let app = ruleSet.catalog.app
        guard number(ofApp: app) == nil else { return }
        let state = AppState(
            name: app, ruleSet: ruleSet, birth: ruleSet.sequence, versions: emptyWindow,
            index: SubscriptionIndex(rules: ruleSet.rules),
            collapse: CollapseWindow(keysMax: limits.collapseKeysMax),
            durations: ruleSet.durations)
        if let place = freePlaces.popLast() {
            appNumbers[app] = place
            apps[place] = state
        } else {
            appNumbers[app] = apps.count
            apps.append(state)
        }
    }

    /// Returns the rule set in force for `app`; `nil` before its first catalog.
    package func ruleSet(of app: String) -> RuleSet? {
        number(ofApp: app).map { apps[$0].ruleSet }
    }

    /// Returns the index of an app in ``apps``; `nil` before its first catalog.
    func number(ofApp name: String) -> Int? { appNumbers[name] }

    /// Clears the output after it has been sent.
    package mutating func clearOutput() {
        streams.withUnsafeMutableBufferPointer { streams in
            // Sound: the buffer is used within the closure that lends it, after a bounds check.
            for (stream, _) in output.touched where Int(stream.slot) < streams.count {
                streams[Int(stream.slot)].last = -1
            }
        }
        output.removeAll()
    }

    // MARK: The log

    /// Applies the next entry of the log. An entry that was applied already has no effect. An entry
    /// after a gap raises the floor, because the missing entries may concern any client.
    package mutating func apply(_ entry: LogEntry, now: Int64) {
        guard entry.sequence > position else { return }
        if entry.sequence != position + 1 { skipGap(to: entry.sequence - 1) }
        position = entry.sequence
        switch entry.body {
        case .catalog(let ruleSet): replace(ruleSet, entry)
        case .removal: remove(entry.app)
        case .change(let decision, let cause):
            guard let app = number(ofApp: entry.app) else { return }
            apply(decision.keys, of: entry, cause: cause, to: app, now: now)
        case .reload(let scope):
            guard let app = number(ofApp: entry.app) else { return }
            reload(scope, entry, app)
        case .start, .registration: break
        }
    }

    /// Replaces versions by sealed ones, which all shards of a node share. Nothing else changes.
    package mutating func adopt(_ versions: SealedVersions) {
        // An app that came back meanwhile has versions of its own.
        guard let app = number(ofApp: versions.app), apps[app].birth == versions.birth,
            versions.last <= position
        else { return }
        apps[app].versions.adopt(versions)
    }

    /// Handles entries up to `sequence` that are on disk but were not applied here.
    private mutating func skipGap(to sequence: UInt64) {
        position = sequence
        floor = sequence
        for app in apps.indices {
            apps[app].versions.raiseFloor(to: sequence)
            _ = apps[app].collapse.endAll()
            for slot in apps[app].streams {
                streams[Int(slot)].waitingKeys = 0
                catchUp(slot, since: .everything)
            }
        }
    }

    /// Handles the loss of a log tail, which voids all cursors: everything is stale for every open
    /// stream.
    package mutating func voidCursors() {
        for app in apps.indices where !apps[app].isGone {
            for slot in apps[app].streams {
                // A lagging stream catches up when it recovers.
                streams[Int(slot)].watermark = 0
                catchUp(slot, since: .everything)
            }
        }
    }

    private mutating func apply(
        _ keys: InvalidatedKeys, of entry: LogEntry, cause: ChangeCause?, to app: Int, now: Int64
    ) {
        var firing: [FiringKey] = []
        swap(&firing, &self.firing)
        collapsed &+= Self.raise(
            keys, in: &apps[app], by: entry, now: now, firing: &firing, streams: &streams,
            notified: &notified)
        if !firing.isEmpty {
            send(
                keys, firing, app, sequence: entry.sequence, cause: cause,
                acceptedAt: entry.acceptedAt)
            firing.removeAll(keepingCapacity: true)
        }
        swap(&firing, &self.firing)
    }

    /// Bumps the keys of a change and applies their collapse windows. Appends the keys to notify
    /// now to `firing`; returns the number of those that wait.
    private static func raise(
        _ keys: InvalidatedKeys, in app: inout AppState, by entry: LogEntry, now: Int64,
        firing: inout [FiringKey], streams: inout [StreamRecord], notified: inout RecentChanges
    ) -> UInt64 {
        var waiting: UInt64 = 0
        // The version and the index entry of a key are far apart in memory; prefetching overlaps
        // both.
        app.index.prefetch(keys, app.versions)
        keys.visit { place, rule, isBroad, key in
            app.versions.raise(key.hash, to: entry.sequence)
            // A key without dependent streams opens no window.
            guard let reach = app.index.reach(rule: rule, key, isBroad: isBroad) else { return }
            let duration = app.durations[rule]
            if duration > 0 {
                let verdict = app.collapse.change(
                    key, rule: rule, at: entry.sequence, acceptedAt: entry.acceptedAt,
                    urgency: entry.urgency, duration: duration, now: now)
                guard verdict == .fire else {
                    if verdict == .begin {
                        app.index.visitHolders(rule: rule, key, reach) {
                            streams.addWaitingKeys(1, to: $0)
                        }
                    }
                    waiting &+= 1
                    return
                }
                notified.note(
                    app.ruleSet.recentKey(key.hash),
                    .init(sequence: entry.sequence, acceptedAt: entry.acceptedAt))
            }
            firing.append((place, rule, reach))
        }
        return waiting
    }

    private mutating func reload(_ scope: ReloadScope, _ entry: LogEntry, _ app: Int) {
        apps[app].versions.raise(apps[app].ruleSet.operatorKey(scope), to: entry.sequence)
        let reached =
            if case .client(let client) = scope {
                slots(ofClient: client, app)
            } else { apps[app].streams }
        // A catch-up covers everything, so changes that wait in a collapse window are included.
        let sent = watermarks(app, upTo: entry.sequence - 1)
        for slot in reached {
            let covered = max(streams[Int(slot)].own(sent), streams[Int(slot)].covered)
            catchUp(slot, since: .after(covered), acceptedAt: entry.acceptedAt)
        }
    }

    private mutating func replace(_ ruleSet: RuleSet, _ entry: LogEntry) {
        install(ruleSet)
        guard let app = number(ofApp: entry.app), apps[app].ruleSet !== ruleSet else { return }
        // A waiting change whose rule is removed, or gets another window, is sent under the old
        // catalog, which decided it. The new id is for what the new catalog makes stale below.
        let rules = apps[app].ruleSet.rules
        let due = apps[app].collapse.endAll { ruleSet.slot(of: rules[$0]) }
        let sent = watermarks(app, upTo: entry.sequence - 1)
        send(due, app, sent)
        for slot in apps[app].streams { streams[Int(slot)].generation &+= 1 }
        apps[app].ruleSet = ruleSet
        apps[app].index = SubscriptionIndex(rules: ruleSet.rules)
        apps[app].durations = ruleSet.durations
        for slot in apps[app].streams {
            guard let holdings = holdings(of: slot, app) else { continue }
            insertKeys(of: slot, app, holdings)
            // A new rule makes its kind stale for every client that built without it. That
            // notification includes the waiting changes, which still wait for other clients.
            guard
                holdings.kinds.contains(where: { $0.newestTimelines >= entry.sequence })
                    || holdings.sets.contains(where: { $0.newestSet >= entry.sequence })
            else { continue }
            let covered = max(streams[Int(slot)].own(sent), streams[Int(slot)].covered)
            catchUp(slot, since: .after(covered), holdings, acceptedAt: entry.acceptedAt)
        }
    }

    /// Ends the streams of a removed app. Its index is no longer referenced, and is free when all
    /// streams have closed.
    private mutating func remove(_ name: String) {
        guard let app = number(ofApp: name) else { return }
        appNumbers[name] = nil
        apps[app].isGone = true
        apps[app].versions = emptyWindow
        _ = apps[app].collapse.endAll()
        for slot in apps[app].streams { end(slot) }
        freeIfOver(app)
    }

    /// Frees the index of a removed app once it has no streams.
    mutating func freeIfOver(_ app: Int) {
        guard apps[app].isGone, apps[app].streams.isEmpty else { return }
        freePlaces.append(app)
    }

    /// The size of an app's version window.
    package struct WindowStats: Sendable {
        package let app: String
        /// The number of stored keys.
        package let keys: Int
        /// The maximum number of stored keys.
        package let keysMax: Int
        /// The sequence up to which versions were removed.
        package let floor: UInt64
    }

    /// The version windows of all apps.
    package var windows: [WindowStats] {
        apps.filter { !$0.isGone }.map {
            WindowStats(
                app: $0.name, keys: $0.versions.count, keysMax: $0.versions.keysMax,
                floor: $0.versions.floor)
        }
    }

    // MARK: Collapse windows

    /// The time at which ``endWindows(now:)`` is due, ms on the caller's clock.
    package var nextWindowEnd: Int64? {
        var next: Int64?
        for app in apps.indices {
            if let end = apps[app].collapse.nextEnd { next = min(end, next ?? end) }
        }
        return next
    }

    /// Ends the collapse windows whose time has passed, and notifies of the changes waiting in
    /// them.
    package mutating func endWindows(now: Int64) {
        for app in apps.indices {
            let due = apps[app].collapse.end(now: now)
            send(due, app, watermarks(app, upTo: position))
        }
    }

    /// Returns the sequences up to which everything up to `last` was sent to the app's streams that
    /// do not lag.
    func watermarks(_ app: Int, upTo last: UInt64) -> Watermarks {
        (apps[app].collapse.oldestWaiting.map { min($0 - 1, last) } ?? last, last)
    }
}
