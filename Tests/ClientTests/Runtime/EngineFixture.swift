import Foundation
import WidgetModel

@testable import TimelineRuntime
@testable import WidgetViews

/// A gateway, a set of providers and a naive account of what must be true, around one engine.
///
/// Each event that can happen is one case of `step`, drawn from a seed. The account knows what the
/// engine does not: which changes there were, and how new the data of each build is.
struct EngineFixture {
    /// A change in the log: its position, its moment, and the archived item it hits.
    struct Change {
        let cursor: Cursor
        let moment: Int
        let item: EngineItem
    }

    enum Frame {
        case notification(ReloadNotification)
        case id(Cursor)
    }

    /// The widgets that a person can place.
    let pool: [WidgetInfo]
    /// A relevance widget. People cannot place it, and the gateway notifies of it by its kind
    /// alone.
    let card = WidgetInfo(kind: "com.mygame.card", family: .accessoryRectangular)
    let setKind: String
    var random: SplitMix64
    var now: Duration = .zero
    /// The lead of the device's clock over the true time, in seconds.
    var skew: Double = 0
    /// The number of data changes so far. Unlike sequences, it never goes back.
    var moment = 0

    // The gateway.
    var head = cursor(100)
    var log: [Change] = []
    var ends: [EpochID: UInt64] = [:]
    var registered: Set<EngineItem>?
    var frames: [Frame] = []
    var openAttempt: Int?

    // The device.
    var engine: ReloadEngine
    var placed: [WidgetInfo]
    var content: [EngineItem: Int] = [:]
    var saved = EngineState()
    var lock = DeviceLock.unlocked
    /// The items whose files the lock has made unreadable since their builds began.
    var overtaken: Set<EngineItem> = []
    var savedContent: [EngineItem: Int] = [:]
    var savedPolicies: [WidgetInfo: Date] = [:]
    var savedBudgets: [WidgetInfo: JSONValue] = [:]
    var accounts: ReloadAccounts
    var pending: [EngineAction] = []
    /// The moment of the data that each running build has fetched.
    var fetched: [EngineItem: Int] = [:]
    /// The items that something asked to build.
    var reasons: Set<EngineItem> = []
    /// Descriptions of everything that broke a rule.
    var violations: [String] = []
    var builds = 0
    /// The number of notifications of changes that were already shown.
    var spared = 0
    var restarts = 0
    /// The number of notifications that a relevance widget is stale.
    var cardsTold = 0

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        pool = (1...5).map { character("C\($0)") } + [status]
        setKind = pool[0].kind
        placed = Array(pool.prefix(3)) + [status, card]
        accounts = ReloadAccounts(limit: 1 + Int(seed % 7))
        accounts.place(placed)
        engine = ReloadEngine(
            state: EngineState(), desired: registration(placed), unasked: [setKind],
            settings: Self.settings(accounts.limit), seed: seed)
        reasons = Set(items)
        hand(.started([]))
    }

    private static func settings(_ limit: Int) -> ReloadEngine.Settings {
        var settings = ReloadEngine.Settings()
        settings.schedule.budgetLimit = limit
        settings.protections = [
            character("").kind: .complete, status.kind: .none, "com.mygame.card": .none,
        ]
        return settings
    }

    /// The date on the device's clock.
    var date: Date {
        Date(timeIntervalSinceReferenceDate: 800_000_000 + skew + now / .seconds(1))
    }

    var items: [EngineItem] { placed.map { .timeline($0) } + [.recommendations(kind: setKind)] }

    mutating func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }

    /// Hands the engine an event, records its orders and checks what must hold after every step.
    mutating func hand(_ event: EngineEvent) {
        accounts.clockStands(at: date)
        for action in engine.handle(event, now: now, date: date) {
            switch action {
            case .save:
                saved = engine.state
                savedContent = content
                savedPolicies = accounts.accounts.compactMapValues(\.policy)
                check(saved, savedContent, "the archive")
            case .saveBudgets: savedBudgets = engine.state.budgets.mapValues(\.json)
            case .build(let info):
                if let reload = engine.records[.timeline(info)]?.build?.reload {
                    if reload.reasons == [.policy], accounts.policyAsks(info) {
                        reasons.insert(.timeline(info))
                    }
                    accounts.start(reload, hasTimeline: content[.timeline(info)] != nil)
                }
                started(.timeline(info))
            case .recommend(let kind): started(.recommendations(kind: kind))
            case .connect(_, let since) where since == nil:
                violations.append("connected without a cursor")
            case .acknowledge(let told):
                if let cursor = told.cursor { check(cursor, "an acknowledgement") }
            case .connect, .register, .reconcile: break
            }
            if action != .save, action != .saveBudgets { pending.append(action) }
        }
        check(engine.state, content, "the state")
        accounts.check(engine)
    }

    private mutating func started(_ item: EngineItem) {
        builds += 1
        if lock != .unlocked, item.kind == setKind {
            violations.append("\(item) is built while its files cannot be read")
        }
        if reasons.remove(item) == nil { violations.append("built \(item) unasked") }
        overtaken.remove(item)
        // The worst provider fetches its data at once.
        fetched[item] = moment
    }

    /// Checks that no position claims a change that is missing from the built content.
    private mutating func check(
        _ state: EngineState, _ content: [EngineItem: Int], _ what: String
    ) {
        for (item, position) in state.positions where !position.awaitsBuild {
            for change in log
            where change.item == item && covers(position.cursor, change)
                && change.moment > content[item] ?? -1
            {
                violations.append("\(what) claims a change that \(item) does not show")
            }
        }
    }

    /// Whether a cursor belongs to this log, and is not beyond the end of its epoch.
    private func isKnown(_ cursor: Cursor) -> Bool {
        cursor.sequence <= (cursor.epoch == head.epoch ? head.sequence : ends[cursor.epoch] ?? 0)
    }

    /// Whether a cursor claims a change. A cursor that proves a lost tail claims nothing.
    private func covers(_ cursor: Cursor, _ change: Change) -> Bool {
        change.cursor <= cursor && isKnown(cursor)
    }

    private mutating func check(_ cursor: Cursor, _ what: String) {
        for change in log where items.contains(change.item) && covers(cursor, change) {
            guard let position = engine.state.positions[change.item], !position.awaitsBuild else {
                continue
            }
            if change.moment > content[change.item] ?? -1 {
                violations.append("\(what) claims a change that \(change.item) does not show")
            }
        }
    }

    // MARK: Events

    mutating func step() {
        now += .milliseconds(pick(400))
        switch pick(51) {
        case 0..<6: change()
        case 6..<16: deliverFrame()
        case 16..<27: obey()
        case 27..<30: wake()
        case 30: dropStream()
        case 31: restart()
        case 32: forget()
        case 33: place()
        case 34: failVerification()
        case 35: loseTail()
        case 36: ask(.app)
        case 40, 41: ask(.interaction)
        case 42: skew += Double(pick(7 * 86_400)) - 3 * 86_400
        case 44: lockChanges(DeviceLock.allCases[pick(4)])
        case 45: lockChanges(.unlocked)
        case 46, 47, 48: use()
        case 49, 50: overtake()
        case 43: now += .seconds(pick(86_400))
        case 37: failBuild()
        case 38: refuse()
        default: now += .seconds(pick(100))
        }
    }

    /// Lets a person's tap change the content of a widget. The notification of it may or may not
    /// follow.
    private mutating func use() {
        // Controls do not exist in the Smart Stack of a watch.
        let used = placed.filter { $0 != card }
        let info = used[pick(used.count)]
        // Most of the time, nothing else happened for a while before.
        if pick(4) > 0 {
            while !frames.isEmpty { deliverFrame() }
            deliverFrame()
        }
        change(.timeline(info))
        // Others change data too until the answer arrives.
        let answer = head
        if pick(3) == 0 { change() }
        reasons.insert(.timeline(info))
        accounts.use(info)
        hand(.interacted(info, at: pick(4) == 0 ? nil : answer))
    }

    private mutating func lockChanges(_ lock: DeviceLock) {
        self.lock = lock
        if lock != .unlocked {
            overtaken.formUnion(fetched.keys.filter { $0.kind == setKind })
        }
        hand(.lockChanged(lock))
    }

    /// Locks the device during a build. The lock may be gone again when that build fails.
    private mutating func overtake() {
        lockChanges(.lockedWithPasscode)
        if pick(3) == 0 { lockChanges(.unlocked) }
        failBuild(of: overtaken)
        if pick(3) == 0 { lockChanges(.unlocked) }
    }

    private mutating func ask(_ reason: ReloadReason) {
        let info = placed[pick(placed.count)]
        reasons.insert(.timeline(info))
        if reason.isExempt { accounts.use(info) } else { accounts.owe(info) }
        hand(.reloadRequested(.timeline(info), reason))
    }

    private mutating func change() {
        let every =
            (pool + [card]).map { EngineItem.timeline($0) } + [.recommendations(kind: setKind)]
        change(every[pick(every.count)])
    }

    private mutating func change(_ item: EngineItem) {
        moment += 1
        head.sequence += 1
        log.append(Change(cursor: head, moment: moment, item: item))
        guard openAttempt != nil, let registered else { return }
        if registered.contains(item) {
            let told = Frame.notification(naming([item], head))
            // Several rules of a kind may name one change.
            let isTwice = pick(3) == 0
            frames += isTwice ? [told, told] : [told]
        }
        // Sometimes several changes share one id, which comes only with the last.
        if pick(4) > 0 { frames.append(.id(head)) }
    }

    private func naming(_ items: [EngineItem], _ head: Cursor) -> ReloadNotification {
        var widgets: [WidgetInfo] = []
        var relevance: [String] = []
        var sets: [String] = []
        for item in items {
            switch item {
            case .timeline(card): relevance.append(card.kind)
            case .timeline(let info): widgets.append(info)
            case .recommendations(let kind): sets.append(kind)
            }
        }
        var told = claims(widgets, sets: sets, sequence: head.sequence)
        told.relevance = relevance
        return told
    }

    private mutating func deliverFrame() {
        guard let attempt = openAttempt, engine.isCurrent(attempt: attempt) else {
            frames = []
            openAttempt = nil
            return
        }
        guard !frames.isEmpty else { return hand(.idMoved(attempt: attempt, head)) }
        switch frames.removeFirst() {
        case .id(let id): hand(.idMoved(attempt: attempt, id))
        case .notification(let claims):
            for item in items where item.isConcerned(by: claims) {
                reasons.insert(item)
            }
            if !claims.relevance.isEmpty { cardsTold += 1 }
            hand(.notification(attempt: attempt, claims))
            // A rebuild is never owed for content that is already shown.
            for item in items where item.isConcerned(by: claims) {
                if let record = engine.records[item], !record.isStale,
                    record.build?.isOutdated != true, !claims.all
                {
                    spared += 1
                }
                guard case .timeline(let info) = item,
                    let record = engine.records[item],
                    record.isStale || record.build?.isOutdated == true
                else { continue }
                accounts.owe(info)
            }
            accounts.check(engine)
        }
    }

    /// Carries out one of the pending orders, chosen at random.
    private mutating func obey() {
        guard !pending.isEmpty else { return }
        let action = pending.remove(at: pick(pending.count))
        switch action {
        case .register(let document), .reconcile(let document): register(document)
        case .connect(let attempt, let since): connect(attempt, since)
        case .build(let info):
            finish(.timeline(info))
            let policy = pick(3) == 0 ? date + Double(pick(5_000)) - 500 : nil
            accounts.finish(info, policy: policy)
            hand(.rebuilt(info, milliseconds: 1, reloadDate: policy))
        case .recommend(let kind):
            let item = EngineItem.recommendations(kind: kind)
            finish(item)
            let name = log.last { $0.item == item && $0.moment <= content[item] ?? 0 }
            let set = recommended(kind, ["\((name?.moment ?? 0) / 2)"])
            hand(.recommended(kind: kind, set.items))
        case .acknowledge:
            hand(registered == nil ? .acknowledgementFailed(.unknownClient) : .acknowledged)
            if registered == nil { reasons.formUnion(items) }
        case .save, .saveBudgets: break
        }
    }

    private mutating func finish(_ item: EngineItem) {
        // The build may be of a widget that was removed meanwhile.
        guard items.contains(item) else { return }
        guard let data = fetched.removeValue(forKey: item) else { return }
        content[item] = max(content[item] ?? -1, data)
    }

    private mutating func register(_ document: ClientRegistration) {
        let wanted = Set(ReloadEngine.items(of: document))
        let isNew = wanted.subtracting(registered ?? [])
        registered = wanted
        if document.recommendations.contains(where: \.items.isEmpty) {
            violations.append("a set is registered that nobody recommended")
        }
        for item in isNew {
            let set = document.recommendations.first { .recommendations(kind: $0.kind) == item }
            guard let builtAt = set?.builtAt.flatMap({ Cursor(text: $0) }) else {
                reasons.insert(item)
                continue
            }
            // The client is owed the changes since its build, and is notified of them at once.
            if openAttempt != nil, log.contains(where: { $0.item == item && $0.cursor > builtAt }) {
                frames.insert(.notification(naming([item], head)), at: 0)
            }
        }
        // A client that learns here that its cursors are void need not wait for a notification.
        if engine.state.positions.values.contains(where: { !isKnown($0.cursor) }) {
            reasons.formUnion(items)
        }
        hand(.registered(head))
    }

    private mutating func connect(_ attempt: Int, _ since: Cursor?) {
        // The client's shell closes a stream that is no longer wanted as soon as it is open.
        guard engine.isCurrent(attempt: attempt) else { return }
        guard let registered else {
            reasons.formUnion(items)
            return hand(.ended(attempt: attempt, .refused(.unknownClient)))
        }
        frames = []
        openAttempt = attempt
        guard let since, isKnown(since) else {
            // The cursor proves a lost tail, so everything is stale.
            reasons.formUnion(items)
            hand(.opened(attempt: attempt, resumedFrom: head))
            frames.append(
                .notification(claims(all: true, sequence: head.sequence)))
            frames.append(.id(head))
            return
        }
        hand(.opened(attempt: attempt, resumedFrom: since))
        let stale = registered.filter { item in
            log.contains { $0.item == item && $0.cursor > since }
        }
        if !stale.isEmpty {
            // A catch-up keeps the id it resumed from until it is complete.
            frames.append(.id(since))
            frames.append(.notification(naming(Array(stale), head)))
        }
        frames.append(.id(head))
    }

    private mutating func wake() {
        guard let wake = engine.nextWake else { return }
        now = max(now, wake)
        hand(.woke)
    }

    // MARK: Faults

    private mutating func dropStream(isUnverified: Bool = false) {
        guard let attempt = openAttempt else { return }
        openAttempt = nil
        frames = []
        if isUnverified { hand(.verificationFailed(attempt: attempt)) }
        hand(.ended(attempt: attempt, .closed))
    }

    private mutating func failVerification() {
        guard case .notification? = frames.first else { return }
        dropStream(isUnverified: true)
    }

    private mutating func failBuild(of meant: Set<EngineItem>? = nil) {
        let index = pending.firstIndex {
            switch $0 {
            case .build(let info): meant?.contains(.timeline(info)) ?? true
            case .recommend(let kind): meant?.contains(.recommendations(kind: kind)) ?? true
            default: false
            }
        }
        guard let index else { return }
        let action = pending.remove(at: index)
        if case .recommend(let kind) = action {
            fetched[.recommendations(kind: kind)] = nil
            reasons.insert(.recommendations(kind: kind))
            hand(.recommendFailed(kind: kind))
        }
        guard case .build(let info) = action else { return }
        // A build of a widget removed since then was paid from a budget that is gone as well.
        let isPaid = fetched.removeValue(forKey: .timeline(info)) ?? -1 >= 0
        reasons.insert(.timeline(info))
        accounts.fail(info, isOvertaken: isPaid && overtaken.contains(.timeline(info)))
        hand(.buildFailed(info, reason: "fault"))
    }

    private mutating func refuse() {
        guard !pending.isEmpty else { return }
        let refusal = EngineEvent.Rejection.temporary(retryAfter: nil)
        switch pending[pick(pending.count)] {
        case .register(let document):
            pending.removeAll { $0 == .register(document) }
            hand(.registrationFailed(refusal))
        case .acknowledge(let told):
            pending.removeAll { $0 == .acknowledge(told) }
            hand(.acknowledgementFailed(refusal))
        case .connect(let attempt, let since):
            pending.removeAll { $0 == .connect(attempt: attempt, since: since) }
            hand(.ended(attempt: attempt, .refused(refusal)))
        default: break
        }
    }

    /// Ends the process and starts it again from its archive.
    private mutating func restart() {
        restarts += 1
        pending = []
        fetched = [:]
        frames = []
        openAttempt = nil
        content = savedContent
        accounts.clockStands(at: date)
        accounts.restart(policies: savedPolicies)
        saved.budgets = savedBudgets.compactMapValues {
            ReloadBudget($0, limit: accounts.limit)
        }
        let lost = items.filter { saved.positions[$0]?.awaitsBuild ?? true }
        reasons = Set(lost)
        let sets = saved.registered?.recommendations ?? []
        engine = ReloadEngine(
            state: saved, desired: registration(placed, sets: sets),
            unasked: sets.isEmpty ? [setKind] : [], settings: Self.settings(accounts.limit),
            seed: random.next())
        let shown = placed.filter { content[.timeline($0)] != nil }
        hand(.started(shown.map { .init(widget: $0, reloadDate: savedPolicies[$0]) }, lock: lock))
        reasons.insert(.recommendations(kind: setKind))
        hand(.recommendationsInvalidated)
    }

    private mutating func forget() {
        registered = nil
        dropStream()
    }

    private mutating func place() {
        let info = pool[pick(pool.count)]
        if let index = placed.firstIndex(of: info) {
            guard placed.count > 2 else { return }
            placed.remove(at: index)
            content[.timeline(info)] = nil
            fetched[.timeline(info)] = fetched[.timeline(info)].map { _ in -1 }
        } else {
            placed.append(info)
        }
        reasons.formUnion([.timeline(info)])
        accounts.place(placed)
        hand(.configurationChanged(registration(placed)))
    }

    /// Restores the gateway from a backup: part of its log is gone, and a new epoch begins.
    private mutating func loseTail() {
        dropStream()
        let lost = UInt64(pick(5))
        let sequence = max(100, head.sequence - min(head.sequence, lost))
        log.removeAll { $0.cursor.sequence > sequence }
        ends = ends.mapValues { min($0, sequence) }
        // The backup may be older than the current epoch; then the new one has the same ordinal as
        // the lost one.
        let isSameOrdinal = pick(3) == 0
        if !isSameOrdinal { ends[head.epoch] = sequence }
        head = cursor(
            sequence, epoch: head.epoch.ordinal + (isSameOrdinal ? 0 : 1),
            nonce: UInt32(truncatingIfNeeded: random.next()))
        // The remaining log now counts as the new epoch's past.
    }

    // MARK: The end

    /// Runs the world without faults until nothing is left to do.
    mutating func settle() {
        lockChanges(.unlocked)
        for _ in 0..<600 {
            deliverFrame()
            obey()
            wake()
        }
    }

    /// The items that are still older than the data after everything has settled.
    var outdated: [EngineItem] {
        items.filter { item in
            let newest = log.last { $0.item == item }?.moment ?? -1
            return content[item].map { $0 < newest } ?? true
        }
    }
}
