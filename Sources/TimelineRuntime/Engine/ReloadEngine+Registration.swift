import WidgetModel
import WidgetViews

extension ReloadEngine {
    /// Returns the registration for comparison, without the cursors at which its sets were built.
    static func withoutBuiltAt(_ registration: ClientRegistration) -> ClientRegistration {
        var registration = registration
        for index in registration.recommendations.indices {
            registration.recommendations[index].builtAt = nil
        }
        return registration
    }

    /// Returns the items that a registration asks to be kept current, without duplicates.
    static func items(of registration: ClientRegistration) -> [EngineItem] {
        var seen: Set<EngineItem> = []
        let timelines = registration.widgets.map { EngineItem.timeline(WidgetInfo($0)) }
        let activities = registration.activities.map { EngineItem.timeline(WidgetInfo($0)) }
        let sets = registration.recommendations.map { EngineItem.recommendations(kind: $0.kind) }
        return (timelines + activities + sets).filter { seen.insert($0).inserted }
    }

    /// Returns whether the item is a recommendation set that has not been read yet.
    func isUnasked(_ item: EngineItem) -> Bool {
        if case .recommendations(let kind) = item { unasked.contains(kind) } else { false }
    }

    /// Returns whether the gateway sends notifications for the item. It does not for a set that has
    /// been read but is not registered yet.
    func isTold(_ item: EngineItem) -> Bool {
        guard case .recommendations(let kind) = item else { return true }
        return registered?.recommendations.contains { $0.kind == kind } ?? false
    }

    /// Creates and removes records so that they match the desired registration.
    mutating func reconcile() {
        let wanted =
            Self.items(of: desired) + unasked.map { EngineItem.recommendations(kind: $0) }
        let isWanted = Set(wanted)
        for item in order where records[item] == nil { order.removeAll { $0 == item } }
        for (item, record) in records where !isWanted.contains(item) {
            if record.build == nil {
                records[item] = nil
            } else {
                records[item]?.isRemoved = true
            }
            mustSave = true
        }
        for item in wanted {
            guard let old = records[item] else {
                records[item] = EngineRecord()
                continue
            }
            guard old.isRemoved, var build = old.build else { continue }
            build.start = nil
            build.isOutdated = true
            records[item] = EngineRecord(build: build)
        }
        interacting = interacting.filter { isWanted.contains(.timeline($0.key)) }
        placeAll()
        order = wanted + order.filter { records[$0]?.isRemoved == true && !isWanted.contains($0) }
    }

    mutating func configurationChanged(_ registration: ClientRegistration) {
        let sets = desired.recommendations
        desired = Self.withoutBuiltAt(registration)
        // The sets are those that the providers returned last; see `recommended`.
        desired.recommendations = sets
        if case .waiting = registering { registering = .idle }
        reconcile()
    }

    mutating func didRegister(at cursor: Cursor?, _ digest: String?) {
        guard case .sending(let sent) = registering else { return }
        registering = .idle
        registrationBackoff.succeeded()
        self.digest = digest
        mustReadRegistration = false
        patches = 0
        took(sent, at: cursor)
    }

    /// Records that a patch was accepted. Whether the other members and the digest match is known
    /// only after reading the registration.
    mutating func didPatch(at cursor: Cursor) {
        guard case .sending(let sent) = registering else { return }
        mustReadRegistration = true
        patches += 1
        registering =
            patches <= settings.patchesMax
            ? .idle : .waiting(until: now + draw(\.registrationBackoff))
        took(sent, at: cursor)
    }

    private mutating func took(_ sent: ClientRegistration, at cursor: Cursor?) {
        registered = sent
        mustSave = true
        guard let cursor else { return }
        // Next to a position of another log, the lowest cursor would say nothing about the other
        // items.
        forgetOtherLogs(than: cursor)
        if link.receivedCursor == nil { link.receivedCursor = cursor }
        for item in Self.items(of: sent) {
            guard let record = records[item], !record.isRemoved, record.cursor == nil else {
                continue
            }
            records[item]?.cursor = cursor
            rebuildAnew(item)
        }
    }

    /// Records that another process, or a restored backup, put another registration in force.
    mutating func registeredOtherwise(_ inForce: String?) {
        // A request sent before the gateway answered a registration may be refused after it.
        if inForce == nil || inForce != digest { mustReadRegistration = true }
    }

    mutating func registrationFailed(_ refusal: EngineEvent.Rejection) {
        guard case .sending = registering else { return }
        if refusal == .unknownClient, registered != nil {
            registering = .idle
            registrationLost()
            return
        }
        registering = .waiting(until: now + wait(after: refusal, \.registrationBackoff))
    }

    /// Starts over after the gateway has forgotten this client: registers and rebuilds everything.
    mutating func registrationLost() {
        registered = nil
        digest = nil
        mustReadRegistration = false
        patches = 0
        link.receivedCursor = nil
        acks.owedSequence = nil
        for item in order {
            records[item]?.cursor = nil
            rebuildAnew(item)
        }
        mustSave = true
    }

    /// Returns the wait after a failure: the time that the gateway asked for plus jitter, or the
    /// back-off.
    mutating func wait(
        after refusal: EngineEvent.Rejection, _ backoff: WritableKeyPath<ReloadEngine, Backoff>
    ) -> Duration {
        switch refusal {
        case .temporary(let retryAfter):
            return (retryAfter ?? .zero) + draw(backoff)
        case .unknownClient, .otherRegistration:
            return draw(backoff)
        case .permanent:
            // Only an operator can resolve this, so the client retries rarely.
            return settings.retryCap
                + settings.retryCap * Double.random(in: 0..<1, using: &generator)
        }
    }

    private mutating func draw(_ backoff: WritableKeyPath<ReloadEngine, Backoff>) -> Duration {
        // Drawn from a copy, because a key path and the generator cannot be accessed at the same
        // time.
        var drawn = self[keyPath: backoff]
        let wait = drawn.next(using: &generator)
        self[keyPath: backoff] = drawn
        return wait
    }

    /// Whether an item has no cursor yet, so that a registration must be answered with one.
    var isUnplaced: Bool {
        records.contains { item, record in
            record.cursor == nil && !record.isRemoved && !isUnasked(item)
        }
    }

    mutating func orderRegistration() {
        switch registering {
        case .sending: return
        case .waiting(let until) where until > now: return
        case .idle, .waiting: break
        }
        guard registered != desired || isUnplaced || mustReadRegistration else {
            registering = .idle
            return
        }
        registering = .sending(desired)
        var document = desired
        for (index, set) in document.recommendations.enumerated() {
            guard let record = records[.recommendations(kind: set.kind)], !record.awaitsBuild else {
                continue
            }
            document.recommendations[index].builtAt = record.cursor?.text
        }
        actions.append(mustReadRegistration ? .reconcile(document) : .register(document))
    }
}
