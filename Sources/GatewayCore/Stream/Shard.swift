import WidgetModel

/// Everything one event loop knows and decides: rule sets, versions, the live index and its open
/// streams. Shared with nobody; it applies the log in sequence order, without gaps.
///
/// No I/O, task, lock or clock: `now` is the caller's monotonic time in milliseconds, and what is
/// to be sent is left in ``output``.
package struct Shard: Sendable {
    /// The last log entry applied.
    package internal(set) var position: UInt64
    /// What is to be sent; the caller sends it and calls ``clearOutput()``.
    package internal(set) var output = ShardOutput()
    /// How many streams are open.
    package internal(set) var openStreams = 0
    /// Raised keys that streams depend on and that waited for the end of a collapse window.
    package private(set) var collapsed: UInt64 = 0

    private(set) var limits: CoreLimits
    private var appNumbers = NameTable<Int>()
    var apps: [AppState] = []
    /// Places among ``apps`` that none has.
    private var freePlaces: [Int] = []
    /// The keys of the change being applied that are to be notified now: kept for its memory.
    private var firing: [FiringKey] = []
    var streams: [StreamRecord] = []
    var subscriptions: [StreamSubscription?] = []
    var freeSlots: [UInt32] = []
    private var floor: UInt64
    /// For keys that collapse, the changes that notifications were for.
    var notified = RecentChanges(raisesMax: 16_384)

    struct AppState {
        let name: String
        var ruleSet: RuleSet
        var versions: VersionWindow
        var index: SubscriptionIndex
        var collapse: CollapseWindow
        var streams: [UInt32] = []
        /// The slot of each client's stream that was opened last.
        var clients: [String: UInt32] = [:]
        /// How long each rule collapses, in milliseconds.
        var durations: [Int64]
        /// The app was removed, and its last streams have not closed yet.
        var isGone = false
    }

    /// A raised key by its place, with the slot of its rule and what it reaches.
    typealias FiringKey = (place: RaisedKeys.Index, rule: Int, reach: SubscriptionIndex.Reach)

    /// A shard that has seen nothing, and knows nothing of what happened up to `floor`.
    package init(floor: UInt64, limits: CoreLimits = CoreLimits()) {
        position = floor
        self.floor = floor
        self.limits = limits
    }

    /// From now on notifies of every change at once: its streams bundle changes themselves. Called
    /// before the first stream is opened.
    mutating func stopCollapsing() {
        limits.collapseKeysMax = 0
        for app in apps.indices { apps[app].collapse = CollapseWindow(keysMax: 0) }
    }

    /// Puts a catalog in force that is older than the log tail the shard is about to apply.
    package mutating func install(_ ruleSet: RuleSet) {
        let app = ruleSet.catalog.app
        guard number(ofApp: app) == nil else { return }
        let state = AppState(
            name: app, ruleSet: ruleSet,
            versions: VersionWindow(floor: floor, keysMax: limits.versionKeysMax),
            index: SubscriptionIndex(rules: ruleSet.rules),
            collapse: CollapseWindow(keysMax: limits.collapseKeysMax),
            durations: ruleSet.durations)
        if let place = freePlaces.popLast() {
            appNumbers.set(app, place)
            apps[place] = state
        } else {
            appNumbers.set(app, apps.count)
            apps.append(state)
        }
    }

    /// The rule set in force for `app`; `nil` before its first catalog.
    package func ruleSet(of app: String) -> RuleSet? {
        number(ofApp: app).map { apps[$0].ruleSet }
    }

    /// The place of an app among ``apps``; `nil` before its first catalog.
    func number(ofApp name: String) -> Int? { appNumbers[name] }

    /// What is to be sent has been sent.
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

    /// Applies the next entry of the log. An entry already applied changes nothing; one that comes
    /// after a gap raises the floor, for what lies in the gap may concern anybody.
    package mutating func apply(_ entry: LogEntry, now: Int64) {
        guard entry.sequence > position else { return }
        if entry.sequence != position + 1 { skipGap(to: entry.sequence - 1) }
        position = entry.sequence
        switch entry.body {
        case .catalog(let ruleSet): replace(ruleSet, entry)
        case .removal: remove(entry.app)
        case .change(let decision, let causeTime):
            guard let app = number(ofApp: entry.app) else { return }
            apply(decision.keys, entry, causeTime, app, now)
        case .reload(let scope):
            guard let app = number(ofApp: entry.app) else { return }
            reload(scope, entry, app)
        }
    }

    /// Everything up to `sequence` is on disk and was not seen here.
    private mutating func skipGap(to sequence: UInt64) {
        position = sequence
        floor = sequence
        for app in apps.indices {
            apps[app].versions.raiseFloor(to: sequence)
            _ = apps[app].collapse.endAll()
            for slot in apps[app].streams { catchUp(slot, since: .everything) }
        }
    }

    /// A tail of the log is lost, and every cursor given so far is void: everything is stale for
    /// every open stream.
    package mutating func voidCursors() {
        for app in apps.indices where !apps[app].isGone {
            for slot in apps[app].streams {
                // A stream that lags is told when it recovers.
                streams[Int(slot)].watermark = 0
                catchUp(slot, since: .everything)
            }
        }
    }

    private mutating func apply(
        _ keys: RaisedKeys, _ entry: LogEntry, _ causeTime: String?, _ app: Int, _ now: Int64
    ) {
        var firing: [FiringKey] = []
        swap(&firing, &self.firing)
        collapsed &+= Self.raise(keys, &apps[app], by: entry, now: now, &firing, &notified)
        if !firing.isEmpty {
            send(
                keys, firing, app, sequence: entry.sequence, watermark: watermark(app),
                causeTime: causeTime, acceptedAt: entry.acceptedAt)
            firing.removeAll(keepingCapacity: true)
        }
        swap(&firing, &self.firing)
    }

    /// Notes the keys of a change and asks their windows; those to be notified now are added to
    /// `firing`, and how many are to wait is returned.
    private static func raise(
        _ keys: RaisedKeys, _ app: inout AppState, by entry: LogEntry, now: Int64,
        _ firing: inout [FiringKey], _ notified: inout RecentChanges
    ) -> UInt64 {
        var waiting: UInt64 = 0
        // A key's version and its place in the index lie apart from each other: both are on their
        // way before the first is needed.
        app.index.prefetch(keys, app.versions)
        keys.visit { place, rule, isBroad, key in
            app.versions.raise(key.hash, to: entry.sequence)
            // A key that no stream depends on opens no window.
            guard let reach = app.index.reach(rule: rule, key, isBroad: isBroad) else { return }
            let duration = app.durations[rule]
            if duration > 0 {
                let verdict = app.collapse.change(
                    key, rule: rule, at: entry.sequence, acceptedAt: entry.acceptedAt,
                    duration: duration, now: now)
                guard verdict == .fire else {
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
        // Changes that wait in a collapse window are said along: a catch-up covers all.
        let sent = min(watermark(app), entry.sequence - 1)
        for slot in reached {
            let covered = max(sent, streams[Int(slot)].covered)
            catchUp(slot, since: .after(covered), acceptedAt: entry.acceptedAt)
        }
    }

    private mutating func replace(_ ruleSet: RuleSet, _ entry: LogEntry) {
        install(ruleSet)
        guard let app = number(ofApp: entry.app), apps[app].ruleSet !== ruleSet else { return }
        // Changes that wait were decided by the old catalog: they go out under it. The catalog's
        // own id is for what it makes stale below.
        send(apps[app].collapse.endAll(), app, watermark: entry.sequence - 1)
        for slot in apps[app].streams { streams[Int(slot)].generation &+= 1 }
        apps[app].ruleSet = ruleSet
        apps[app].index = SubscriptionIndex(rules: ruleSet.rules)
        apps[app].durations = ruleSet.durations
        for slot in apps[app].streams {
            guard let holdings = holdings(of: slot, app) else { continue }
            insertKeys(of: slot, app, holdings)
            // A rule that was not there before makes its kind stale for everybody who built
            // without it.
            let covered = max(entry.sequence - 1, streams[Int(slot)].covered)
            catchUp(slot, since: .after(covered), holdings, acceptedAt: entry.acceptedAt)
        }
    }

    /// Ends the streams of an app that is gone. Nothing names its place any more, which is free when
    /// they have closed.
    private mutating func remove(_ name: String) {
        guard let app = number(ofApp: name) else { return }
        appNumbers.remove(name)
        apps[app].isGone = true
        apps[app].versions = VersionWindow(floor: floor, keysMax: limits.versionKeysMax)
        _ = apps[app].collapse.endAll()
        for slot in apps[app].streams { end(slot) }
        freeIfOver(app)
    }

    /// Frees the place of an app that is gone once no stream is left.
    mutating func freeIfOver(_ app: Int) {
        guard apps[app].isGone, apps[app].streams.isEmpty else { return }
        freePlaces.append(app)
    }

    /// How much an app's window of versions remembers.
    package struct WindowFigures: Sendable {
        /// The app.
        package let app: String
        /// How many keys.
        package let keys: Int
        /// How many keys at most.
        package let keysMax: Int
        /// Versions at or below this are forgotten.
        package let floor: UInt64
    }

    /// The windows of all apps.
    package var windows: [WindowFigures] {
        apps.filter { !$0.isGone }.map {
            WindowFigures(
                app: $0.name, keys: $0.versions.count, keysMax: $0.versions.keysMax,
                floor: $0.versions.floor)
        }
    }

    // MARK: Collapse windows

    /// When ``endWindows(now:)`` is due next, in the caller's milliseconds.
    package var nextWindowEnd: Int64? {
        var next: Int64?
        for app in apps.indices {
            if let end = apps[app].collapse.nextEnd { next = min(end, next ?? end) }
        }
        return next
    }

    /// Ends the collapse windows that are over and notifies of what waited in them.
    package mutating func endWindows(now: Int64) {
        for app in apps.indices {
            let due = apps[app].collapse.end(now: now)
            send(due, app, watermark: watermark(app))
        }
    }

    /// Everything at or below is sent to every stream of the app that does not lag.
    func watermark(_ app: Int) -> UInt64 {
        apps[app].collapse.oldestWaiting.map { $0 - 1 } ?? position
    }
}
