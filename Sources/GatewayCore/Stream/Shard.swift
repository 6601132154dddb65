import WidgetModel

/// Everything one event loop knows and decides: rule sets, versions, the live index and its open
/// streams. Shared with nobody; it applies the log in sequence order, without gaps.
///
/// No I/O, task, lock or clock: `now` is the caller's monotonic time in milliseconds, and what is
/// to be sent is left in ``output``.
package struct Shard: Sendable {
    /// The last log entry applied.
    package private(set) var position: UInt64
    /// What is to be sent; the caller sends it and calls ``clearOutput()``.
    package private(set) var output = ShardOutput()
    /// How many streams are open.
    package private(set) var openStreams = 0

    private let limits: CoreLimits
    private var floor: UInt64
    private var appIndices: [String: Int] = [:]
    private var apps: [AppState] = []
    private var streams: [StreamRecord] = []
    private var subscriptions: [StreamSubscription?] = []
    private var freeSlots: [UInt32] = []
    private var batch: UInt64 = 0
    private var group: UInt64 = 0

    private struct AppState {
        let name: String
        var ruleSet: RuleSet
        var versions: VersionWindow
        var index: SubscriptionIndex
        var collapse: CollapseWindow
        var streams: [UInt32] = []
        var clients: [String: [UInt32]] = [:]
    }

    /// A shard that has seen nothing, and knows nothing of what happened up to `floor`.
    package init(floor: UInt64, limits: CoreLimits = CoreLimits()) {
        position = floor
        self.floor = floor
        self.limits = limits
    }

    /// Puts a catalog in force that is older than the log tail the shard is about to apply.
    package mutating func install(_ ruleSet: RuleSet) {
        let app = ruleSet.catalog.app
        guard appIndices[app] == nil else { return }
        appIndices[app] = apps.count
        apps.append(
            AppState(
                name: app, ruleSet: ruleSet,
                versions: VersionWindow(floor: floor, keysMax: limits.versionKeysMax),
                index: SubscriptionIndex(ruleCount: ruleSet.rules.count),
                collapse: CollapseWindow(keysMax: limits.collapseKeysMax)))
    }

    /// The rule set in force for `app`; `nil` before its first catalog.
    package func ruleSet(of app: String) -> RuleSet? {
        appIndices[app].map { apps[$0].ruleSet }
    }

    /// What is to be sent has been sent.
    package mutating func clearOutput() {
        for (stream, _) in output.touched {
            streams[Int(stream.slot)].first = -1
            streams[Int(stream.slot)].last = -1
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
        case .change(let decision, let causeTime):
            guard let app = appIndices[entry.app] else { return }
            apply(decision, entry, causeTime, app, now)
        case .reload(let kind):
            guard let app = appIndices[entry.app] else { return }
            reload(kind, entry, app)
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

    private mutating func apply(
        _ decision: RuleSet.Decision, _ entry: LogEntry, _ causeTime: String?, _ app: Int,
        _ now: Int64
    ) {
        var firing: [CollapseWindow.Key] = []
        for key in decision.keys {
            apps[app].versions.raise(key.values.hash, to: entry.sequence)
            // A key that no stream depends on opens no window.
            guard apps[app].index.isHeld(rule: key.rule, values: key.values) else { continue }
            let window = CollapseWindow.Key(rule: key.rule, values: key.values)
            let duration = apps[app].ruleSet.rules[key.rule].collapse
            if apps[app].collapse.change(
                window, at: entry.sequence, duration: duration, now: now) == .fire
            {
                firing.append(window)
            }
        }
        send(
            firing.map { ($0, entry.sequence) }, app, watermark: watermark(app),
            causeTime: causeTime, acceptedAt: entry.acceptedAt)
    }

    private mutating func reload(_ kind: String?, _ entry: LogEntry, _ app: Int) {
        let ruleSet = apps[app].ruleSet
        let key = kind.map(ruleSet.operatorKey(kind:)) ?? ruleSet.operatorKey
        apps[app].versions.raise(key, to: entry.sequence)
        // Changes that wait in a collapse window are said along: a catch-up covers all.
        let sent = min(watermark(app), entry.sequence - 1)
        for slot in apps[app].streams {
            let covered = max(sent, streams[Int(slot)].covered)
            catchUp(slot, since: .after(covered), acceptedAt: entry.acceptedAt)
        }
    }

    private mutating func replace(_ ruleSet: RuleSet, _ entry: LogEntry) {
        install(ruleSet)
        guard let app = appIndices[entry.app], apps[app].ruleSet !== ruleSet else { return }
        // Changes that wait were decided by the old catalog: they go out under it. The catalog's
        // own id is for what it makes stale below.
        send(
            apps[app].collapse.endAll(), app, watermark: entry.sequence - 1, causeTime: nil,
            acceptedAt: 0)
        for slot in apps[app].streams { streams[Int(slot)].generation &+= 1 }
        apps[app].ruleSet = ruleSet
        apps[app].index = SubscriptionIndex(ruleCount: ruleSet.rules.count)
        for slot in apps[app].streams {
            insertKeys(of: slot, app)
            // A rule that was not there before makes its kind stale for everybody who built
            // without it.
            let covered = max(entry.sequence - 1, streams[Int(slot)].covered)
            catchUp(slot, since: .after(covered), acceptedAt: entry.acceptedAt)
        }
    }

    // MARK: Collapse windows

    /// When ``endWindows(now:)`` is due next, in the caller's milliseconds.
    package var nextWindowEnd: Int64? {
        apps.lazy.compactMap(\.collapse.nextEnd).min()
    }

    /// Ends the collapse windows that are over and notifies of what waited in them.
    package mutating func endWindows(now: Int64) {
        for app in apps.indices {
            let due = apps[app].collapse.end(now: now)
            send(due, app, watermark: watermark(app), causeTime: nil, acceptedAt: 0)
        }
    }

    /// Everything at or below is sent to every stream of the app that does not lag.
    private func watermark(_ app: Int) -> UInt64 {
        apps[app].collapse.oldestWaiting.map { $0 - 1 } ?? position
    }

    // MARK: Sending

    /// Notifies the holders of each key. Keys with the same name share one notification, and a
    /// stream that holds several of them gets it once.
    private mutating func send(
        _ keys: [(key: CollapseWindow.Key, sequence: UInt64)], _ app: Int, watermark: UInt64,
        causeTime: String?, acceptedAt: Int64
    ) {
        guard !keys.isEmpty else { return }
        batch += 1
        let rules = apps[app].ruleSet.rules
        var places: [StaleName: Int] = [:]
        var named: [(name: StaleName, keys: [(CollapseWindow.Key, UInt64)], sequence: UInt64)] = []
        for (key, sequence) in keys {
            let name = rules[key.rule].name(of: key.values.positions)
            if let place = places[name] {
                named[place].keys.append((key, sequence))
                named[place].sequence = max(named[place].sequence, sequence)
            } else {
                places[name] = named.count
                named.append((name, [(key, sequence)], sequence))
            }
        }
        for (name, keys, sequence) in named {
            group += 1
            var frame: Int32 = -1
            for (key, changed) in keys {
                deliver(
                    key, changedAt: changed, app, name, sequence, watermark, causeTime, acceptedAt,
                    &frame)
            }
        }
    }

    private mutating func deliver(
        _ key: CollapseWindow.Key, changedAt changed: UInt64, _ app: Int, _ name: StaleName,
        _ sequence: UInt64, _ watermark: UInt64, _ causeTime: String?, _ acceptedAt: Int64,
        _ frame: inout Int32
    ) {
        // The holders are visited while `streams` and `output` change, so both leave `self` for
        // the time of the visit: exclusive access without a copy.
        var streams: [StreamRecord] = []
        swap(&streams, &self.streams)
        var output = ShardOutput()
        swap(&output, &self.output)
        let (batch, group, appName) = (batch, group, apps[app].name)
        apps[app].index.visitHolders(rule: key.rule, values: key.values) { holder in
            let slot = Int(holder.stream)
            guard streams[slot].generation == holder.generation, streams[slot].group != group,
                !streams[slot].isLagging, streams[slot].covered < changed
            else { return }
            streams[slot].group = group
            if frame < 0 {
                frame = output.add(
                    .init(
                        app: appName, content: StaleSet([name], sequence: sequence),
                        watermark: watermark, causeTime: causeTime, acceptedAt: acceptedAt))
            }
            output.deliver(
                frame, watermark: watermark, to: &streams[slot], slot: holder.stream, batch: batch)
        }
        swap(&output, &self.output)
        swap(&streams, &self.streams)
    }

    /// Sends one notification of everything stale for a stream since `point`, if anything is.
    ///
    /// Nothing that became stale up to `point` may be unsent: from here on the stream counts as
    /// covered up to the shard's position.
    private mutating func catchUp(
        _ slot: UInt32, since point: ResumePoint, includingOwed: Bool = false,
        acceptedAt: Int64 = 0
    ) {
        let index = Int(slot)
        guard let subscription = subscriptions[index], !streams[index].isLagging else { return }
        let app = Int(streams[index].app)
        let stale = stale(
            subscription.record, app, since: point, kinds: subscription.kinds,
            includingOwed: includingOwed)
        streams[index].covered = max(streams[index].covered, position)
        guard !stale.isEmpty else { return }
        batch += 1
        let frame = output.add(
            .init(
                app: apps[app].name, content: stale, watermark: position, causeTime: nil,
                acceptedAt: acceptedAt))
        output.deliver(
            frame, watermark: position, to: &streams[index], slot: slot, batch: batch)
    }

    private func stale(
        _ record: ClientRecord, _ app: Int, since point: ResumePoint, kinds: Set<String>?,
        includingOwed: Bool
    ) -> StaleSet {
        Staleness(ruleSet: apps[app].ruleSet, versions: apps[app].versions, limits: limits)
            .stale(
                for: record, since: point, kinds: kinds, includingOwed: includingOwed, at: position)
    }

    // MARK: Polls and streams

    /// What is stale for a client now, or `nil` for an app without a catalog.
    package func poll(
        _ record: ClientRecord, app: String, since point: ResumePoint, kinds: Set<String>?
    ) -> StaleSet? {
        appIndices[app].map {
            stale(record, $0, since: point, kinds: kinds, includingOwed: true)
        }
    }

    /// Opens a stream. If anything is stale since `point`, the catch-up is in ``output``.
    ///
    /// - Parameter vouched: Attributes that the stream's token vouches for beside those of the
    ///   registration; they stay with the stream when the client registers anew.
    /// - Returns: `nil` for an app without a catalog.
    package mutating func open(
        _ record: ClientRecord, app name: String, since point: ResumePoint, kinds: Set<String>?,
        vouched: [String: [String]] = [:]
    ) -> StreamID? {
        guard let app = appIndices[name] else { return nil }
        let slot: UInt32
        if let free = freeSlots.popLast() {
            slot = free
        } else {
            slot = UInt32(truncatingIfNeeded: streams.count)
            streams.append(StreamRecord())
            subscriptions.append(nil)
        }
        let index = Int(slot)
        streams[index].app = Int32(truncatingIfNeeded: app)
        streams[index].serial &+= 1
        streams[index].generation &+= 1
        streams[index].isLagging = false
        streams[index].first = -1
        streams[index].last = -1
        if case .after(let sequence) = point {
            // It may be ahead of this shard, having heard from one that is faster. Then what is
            // still to be applied up to there was said already, and the id must not go back.
            streams[index].watermark = sequence
            streams[index].covered = sequence
        } else {
            streams[index].watermark = 0
            streams[index].covered = 0
        }
        subscriptions[index] = StreamSubscription(
            record: record.vouched(vouched), kinds: kinds, vouched: vouched,
            place: apps[app].streams.count)
        apps[app].streams.append(slot)
        apps[app].clients[record.client, default: []].append(slot)
        openStreams += 1
        insertKeys(of: slot, app)
        catchUp(slot, since: point, includingOwed: true)
        return StreamID(slot: slot, serial: streams[index].serial)
    }

    /// The stream is gone.
    package mutating func close(_ id: StreamID) {
        let index = Int(id.slot)
        guard isOpen(id), let subscription = subscriptions[index] else { return }
        let app = Int(streams[index].app)
        removeKeys(of: id.slot, app)
        let last = apps[app].streams.removeLast()
        if last != id.slot {
            apps[app].streams[subscription.place] = last
            subscriptions[Int(last)]?.place = subscription.place
        }
        let client = subscription.record.client
        apps[app].clients[client]?.removeAll { $0 == id.slot }
        if apps[app].clients[client]?.isEmpty == true { apps[app].clients[client] = nil }
        subscriptions[index] = nil
        streams[index].app = -1
        streams[index].isLagging = false
        openStreams -= 1
        freeSlots.append(id.slot)
    }

    /// Whether `id` names a stream that is open.
    package func isOpen(_ id: StreamID) -> Bool {
        let index = Int(id.slot)
        return index < streams.count && streams[index].serial == id.serial
            && streams[index].isOpen
    }

    /// The stream could not take what was sent since `sequence`: nothing more is sent until
    /// ``recovered(_:)``.
    package mutating func lagging(_ id: StreamID, since sequence: UInt64) {
        guard isOpen(id) else { return }
        streams[Int(id.slot)].isLagging = true
        streams[Int(id.slot)].watermark = sequence
    }

    /// The stream takes bytes again: one catch-up from what it last got.
    package mutating func recovered(_ id: StreamID) {
        guard isOpen(id), streams[Int(id.slot)].isLagging else { return }
        streams[Int(id.slot)].isLagging = false
        let watermark = streams[Int(id.slot)].watermark
        // Sets still owed may have been said in what was not taken.
        catchUp(
            id.slot, since: watermark == 0 ? .everything : .after(watermark), includingOwed: true)
    }

    /// The id an idle stream's heartbeat carries; `nil` when the stream is gone or lags, and then
    /// its id must not move.
    package mutating func heartbeat(_ id: StreamID) -> UInt64? {
        guard isOpen(id), !streams[Int(id.slot)].isLagging else { return nil }
        let index = Int(id.slot)
        streams[index].watermark = max(
            streams[index].watermark, streams[index].covered,
            watermark(Int(streams[index].app)))
        return streams[index].watermark
    }

    // MARK: Registrations

    /// A client registered anew: its open streams follow at once.
    package mutating func registered(_ record: ClientRecord, app name: String) {
        guard let app = appIndices[name] else { return }
        for slot in apps[app].clients[record.client] ?? [] {
            guard let subscription = subscriptions[Int(slot)] else { continue }
            removeKeys(of: slot, app)
            subscriptions[Int(slot)]?.record = record.vouched(subscription.vouched)
            insertKeys(of: slot, app)
            // The id it last got is the cursor it goes by for what it holds from now on, too.
            // A lagging stream asks when it recovers.
            let watermark = streams[Int(slot)].watermark
            catchUp(slot, since: watermark == 0 ? .everything : .after(watermark))
        }
    }

    /// A client confirmed recommendation sets: nothing it depends on changed.
    package mutating func confirmed(_ record: ClientRecord, app name: String) {
        guard let app = appIndices[name] else { return }
        for slot in apps[app].clients[record.client] ?? [] {
            guard let held = subscriptions[Int(slot)]?.record else { continue }
            // Only what was confirmed is taken over: the stream may have been opened with a later
            // registration than the one confirmed, and its keys are in the index.
            subscriptions[Int(slot)]?.record = held.with(
                confirmed: held.confirmed.merging(record.confirmed) { max($0, $1) })
        }
    }

    /// A client was removed: its streams end.
    package mutating func removed(client: String, app name: String) {
        guard let app = appIndices[name] else { return }
        for slot in apps[app].clients[client] ?? [] {
            output.ended.append(StreamID(slot: slot, serial: streams[Int(slot)].serial))
        }
    }

    private mutating func insertKeys(of slot: UInt32, _ app: Int) {
        guard let subscription = subscriptions[Int(slot)] else { return }
        let holder = SubscriptionIndex.Holder(
            stream: slot, generation: streams[Int(slot)].generation)
        let ruleSet = apps[app].ruleSet
        for dependency in ruleSet.dependencies(of: subscription.record, kinds: subscription.kinds) {
            let values = BoundValues(
                rule: ruleSet.rules[dependency.rule], positions: dependency.positions)
            apps[app].index.insert(holder, rule: dependency.rule, values: values)
        }
    }

    private mutating func removeKeys(of slot: UInt32, _ app: Int) {
        guard let subscription = subscriptions[Int(slot)] else { return }
        streams[Int(slot)].generation &+= 1
        let ruleSet = apps[app].ruleSet
        for dependency in ruleSet.dependencies(of: subscription.record, kinds: subscription.kinds) {
            let values = BoundValues(
                rule: ruleSet.rules[dependency.rule], positions: dependency.positions)
            apps[app].index.end(rule: dependency.rule, values: values) {
                streams[Int($0.stream)].generation == $0.generation
            }
        }
    }
}
