import Foundation
import WidgetModel

@testable import TimelineClient

/// A gateway, a set of providers and a naive account of what must be true, around one engine.
///
/// Everything that can happen is one of `step`'s cases, drawn from a seed. The account knows what
/// the engine does not: which changes there were, and how new the data of each build is.
struct EngineWorld {
    /// A change as it is logged: where, when, and what it hits.
    struct Change {
        let cursor: Cursor
        let moment: Int
        let item: Archived
    }

    enum Frame {
        case notification(ReloadNotification)
        case id(Cursor)
    }

    /// What a person can place.
    let pool: [WidgetInfo]
    /// What nobody places, and the gateway tells of by its kind alone: a relevance widget.
    let card = WidgetInfo(kind: "com.mygame.card", family: .accessoryRectangular)
    let setKind: String
    var random: JitterGenerator
    var now: Duration = .zero
    /// How far the device's clock is ahead of the time, seconds.
    var skew: Double = 0
    /// Counts data changes; unlike sequences it never goes back.
    var moment = 0

    // The gateway.
    var head = cursor(100)
    var log: [Change] = []
    var ends: [EpochID: UInt64] = [:]
    var registered: Set<Archived>?
    var frames: [Frame] = []
    var openAttempt: Int?

    // The device.
    var engine: ReloadEngine
    var placed: [WidgetInfo]
    var content: [Archived: Int] = [:]
    var saved = EngineState()
    var lock = DeviceLock.unlocked
    /// Builds whose files the lock has taken away since they began.
    var overtaken: Set<Archived> = []
    var savedContent: [Archived: Int] = [:]
    var savedPolicies: [WidgetInfo: Date] = [:]
    var savedBudgets: [WidgetInfo: JSONValue] = [:]
    var accounts: ReloadAccounts
    var pending: [EngineAction] = []
    /// How new the data is that a build under way has fetched.
    var fetched: [Archived: Int] = [:]
    /// What something asked to be built.
    var reasons: Set<Archived> = []
    /// What must not be and was.
    var violations: [String] = []
    var builds = 0
    /// Notifications of what was shown already.
    var spared = 0
    var restarts = 0
    /// Notifications that a relevance widget is stale.
    var cardsTold = 0

    init(seed: UInt64) {
        random = JitterGenerator(seed: seed)
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

    /// What the device's clock says.
    var date: Date {
        Date(timeIntervalSinceReferenceDate: 800_000_000 + skew + now / .seconds(1))
    }

    var items: [Archived] { placed.map { .timeline($0) } + [.recommendations(kind: setKind)] }

    mutating func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }

    /// Hands an event in, notes the orders and checks what must hold after every step.
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

    private mutating func started(_ item: Archived) {
        builds += 1
        if lock != .unlocked, item.kind == setKind {
            violations.append("\(item) is built while its files cannot be read")
        }
        if reasons.remove(item) == nil { violations.append("built \(item) unasked") }
        overtaken.remove(item)
        // The worst provider fetches at once.
        fetched[item] = moment
    }

    /// No position may claim a change that is not in what was built.
    private mutating func check(
        _ state: EngineState, _ content: [Archived: Int], _ what: String
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

    /// Whether a cursor is of this log, and not beyond the end of its epoch.
    private func isKnown(_ cursor: Cursor) -> Bool {
        cursor.sequence <= (cursor.epoch == head.epoch ? head.sequence : ends[cursor.epoch] ?? 0)
    }

    /// Whether a cursor claims a change; one that proves a lost tail claims nothing.
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

    // MARK: What can happen

    mutating func step(faults: Bool) {
        now += .milliseconds(pick(400))
        switch pick(faults ? 51 : 30) {
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

    /// A person's tap changes what a widget shows; the change comes back, perhaps.
    private mutating func use() {
        // The Smart Stack of a watch has no controls.
        let used = placed.filter { $0 != card }
        let info = used[pick(used.count)]
        // Mostly after a while in which nothing happened.
        if pick(4) > 0 {
            while !frames.isEmpty { deliverFrame() }
            deliverFrame()
        }
        change(.timeline(info))
        // Until the answer is here, others change things too.
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

    /// The lock comes while something is built, and may be gone again when that fails.
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

    mutating func change() {
        let every =
            (pool + [card]).map { Archived.timeline($0) } + [.recommendations(kind: setKind)]
        change(every[pick(every.count)])
    }

    private mutating func change(_ item: Archived) {
        moment += 1
        head.sequence += 1
        log.append(Change(cursor: head, moment: moment, item: item))
        guard openAttempt != nil, let registered else { return }
        if registered.contains(item) { frames.append(.notification(naming([item], head))) }
        // Sometimes the id of several changes comes only with the last.
        if pick(4) > 0 { frames.append(.id(head)) }
    }

    private func naming(_ items: [Archived], _ head: Cursor) -> ReloadNotification {
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

    mutating func deliverFrame() {
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
            // What is shown already is owed nothing.
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

    /// Does one of the orders, in any order.
    mutating func obey() {
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
            let item = Archived.recommendations(kind: kind)
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

    private mutating func finish(_ item: Archived) {
        // Of a widget that was removed meanwhile.
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
            // It is owed what happened since, and told at once.
            if openAttempt != nil, log.contains(where: { $0.item == item && $0.cursor > builtAt }) {
                frames.insert(.notification(naming([item], head)), at: 0)
            }
        }
        // A client that learns here that its cursors are void need not wait to be told.
        if engine.state.positions.values.contains(where: { !isKnown($0.cursor) }) {
            reasons.formUnion(items)
        }
        hand(.registered(head))
    }

    private mutating func connect(_ attempt: Int, _ since: Cursor?) {
        // The shell closes a stream that is no longer wanted as soon as it is open.
        guard engine.isCurrent(attempt: attempt) else { return }
        guard let registered else {
            reasons.formUnion(items)
            return hand(.ended(attempt: attempt, .refused(.unknownClient)))
        }
        frames = []
        openAttempt = attempt
        guard let since, isKnown(since) else {
            // It proves a lost tail: everything is stale.
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

    mutating func wake() {
        guard let wake = engine.nextWake else { return }
        now = max(now, wake)
        hand(.woke)
    }

    // MARK: What can go wrong

    mutating func dropStream() {
        guard let attempt = openAttempt else { return }
        openAttempt = nil
        frames = []
        hand(.ended(attempt: attempt, .closed))
    }

    mutating func failVerification() {
        guard let attempt = openAttempt, case .notification? = frames.first else { return }
        openAttempt = nil
        frames = []
        hand(.verificationFailed(attempt: attempt))
        hand(.ended(attempt: attempt, .closed))
    }

    mutating func failBuild(of meant: Set<Archived>? = nil) {
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
        // One of a widget that was removed since was paid for from a budget that is gone with it.
        let isPaid = fetched.removeValue(forKey: .timeline(info)) ?? -1 >= 0
        reasons.insert(.timeline(info))
        if isPaid, overtaken.contains(.timeline(info)) {
            accounts.overtake(info)
        } else {
            accounts.fail(info)
        }
        accounts.repeatLater(info)
        hand(.buildFailed(info, reason: "fault"))
    }

    mutating func refuse() {
        guard !pending.isEmpty else { return }
        let refusal = EngineEvent.Refusal.temporary(retryAfter: nil)
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

    /// The process dies and starts again from its archive.
    mutating func restart() {
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

    mutating func forget() {
        registered = nil
        guard let attempt = openAttempt else { return }
        openAttempt = nil
        frames = []
        hand(.ended(attempt: attempt, .closed))
    }

    mutating func place() {
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

    /// The gateway is restored from a backup: part of its log is gone, and a new epoch begins.
    mutating func loseTail() {
        dropStream()
        let lost = UInt64(pick(5))
        let sequence = max(100, head.sequence - min(head.sequence, lost))
        log.removeAll { $0.cursor.sequence > sequence }
        ends = ends.mapValues { min($0, sequence) }
        // From before the current epoch began: then it counts as many as the one it lost.
        let isSameOrdinal = pick(3) == 0
        if !isSameOrdinal { ends[head.epoch] = sequence }
        head = cursor(
            sequence, epoch: head.epoch.ordinal + (isSameOrdinal ? 0 : 1),
            nonce: UInt32(truncatingIfNeeded: random.next()))
        // What is left of the log is read as the new epoch's past.
    }

    // MARK: The end

    /// Lets everything come to rest without faults.
    mutating func settle() {
        lockChanges(.unlocked)
        for _ in 0..<600 {
            deliverFrame()
            obey()
            wake()
        }
    }

    /// What is still older than the data, after everything came to rest.
    var outdated: [Archived] {
        items.filter { item in
            let newest = log.last { $0.item == item }?.moment ?? -1
            return content[item].map { $0 < newest } ?? true
        }
    }
}
