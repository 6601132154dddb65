import WidgetModel

/// What one client is owed of one sort (its timelines, its recommendation sets, or one control),
/// and which address says it next.
///
/// There is no queue: what is owed is everything up to the latest change that concerns the client,
/// beyond what it confirmed. Streams and polls say it without confirming; an address that took a
/// push said everything up to the position at which the push was composed. Addresses are asked in
/// the order of the client's preference, the next one only where those before it fail.
///
/// Time is the caller's monotonic milliseconds.
package struct DeliveryAttempts: Sendable {
    /// How long what a stream carried may stay unconfirmed, and how long a client whose stream
    /// ended may take to come back, in milliseconds.
    package static let grace: Int64 = 20_000
    /// How many times a client that usually polls or acknowledges, and did not, is pushed again.
    package static let repeatsMax = 3
    /// How long each push waits for the client to poll or acknowledge, in milliseconds.
    package static let repeatWaits: [Int64] = [300_000, 1_800_000, 10_800_000]
    /// Failures in a row after which the next address is asked as well.
    package static let failuresMax = 3

    /// A push address and how it fares.
    package struct Address: Sendable, Hashable {
        /// Stands for the address: another token is another address.
        package let id: UInt64
        /// Everything up to here was said by a push that was taken.
        package internal(set) var delivered: UInt64 = 0
        /// From where the last push that was taken spoke; 0 for one that said everything, and
        /// before the first.
        package internal(set) var spokeSince: UInt64 = 0
        /// Up to here no push is made again: one was refused for good.
        package internal(set) var givenUp: UInt64 = 0
        /// Failures in a row.
        package internal(set) var failures = 0
        /// Pushes made again since the client was last heard of.
        package internal(set) var repeats = 0
        /// Whether the client was not heard of since the last push that was taken.
        package internal(set) var awaitsSign = false
        /// Whether it may be pushed to.
        package internal(set) var isUsable = true
        /// Whether the configuration lets it be pushed to at all. Not persisted: it is configured.
        package internal(set) var isConfigured = true
        /// After a failure: the earliest time of the next push.
        var notBefore = Int64.min
        /// After a push that was taken: when it is made again if the client is not heard of.
        var repeatAt = Int64.min
        /// When the budget allows what is stale now; it is asked again when more is.
        var withheldUntil = Int64.min
        /// The push whose outcome is not known.
        var underWay: UnderWay?

        struct UnderWay: Hashable {
            let position: UInt64
            let since: UInt64
            let isRepeat: Bool
            var wasHeardOf = false
        }

        init(id: UInt64) {
            self.id = id
        }

        /// Whether anything is pushed to it.
        var isOpen: Bool { isUsable && isConfigured }
        /// When it may be pushed to.
        var firstPush: Int64 { max(notBefore, withheldUntil) }
        /// Up to where nothing is left to say here, if what is under way is taken.
        var covered: UInt64 { max(delivered, givenUp, underWay?.position ?? 0) }
        /// Whether it took a push up to `latest`, but the client was not heard of in spite of all
        /// repeats, or of all until one was refused for good.
        func isExhausted(at latest: UInt64) -> Bool {
            awaitsSign && (repeats >= DeliveryAttempts.repeatsMax || givenUp >= latest)
        }
    }

    /// What to do next.
    package enum Step: Sendable, Hashable {
        /// Nothing, until something happens.
        case rest
        /// Nothing, until that time or until something happens.
        case wait(until: Int64)
        /// Push to the address, if something is stale and the budget allows.
        case push(address: UInt64)
    }

    /// The latest change that concerns the client.
    package internal(set) var latest: UInt64 = 0
    /// Everything up to here was acknowledged, or is covered by a cursor a stream resumed from.
    package internal(set) var confirmed: UInt64 = 0
    /// The highest urgency of what waits to be pushed.
    package internal(set) var urgency = Urgency.normal
    /// Whether the client ever polled or acknowledged.
    package internal(set) var isKnownToAnswer = false
    /// Up to here nothing was stale any more when it was looked at. Not persisted: it can be looked
    /// at again.
    package internal(set) var moot: UInt64 = 0
    /// The addresses, in the order of preference.
    package internal(set) var addresses: [Address] = []

    /// Open streams.
    var streams = 0
    /// Until then a client whose stream came or went has its chance.
    var graceUntil = Int64.min
    /// Changes that a stream carried, and until when it has its chance to be confirmed. Bounded:
    /// the last one stands for all that came after it.
    var carried: [(sequence: UInt64, until: Int64)] = []
    /// The latest change that no stream carried.
    var uncarried: UInt64 = 0
    /// Until then the change is spread.
    var heldUntil = Int64.min
    /// When the oldest change that waits to be pushed came.
    var pendingSince = Int64.min
    /// Changes a stream carried that are told apart.
    private static let carriedMax = 8

    /// Nothing is owed: up to `confirmed` the client has heard of everything.
    package init(confirmed: UInt64 = 0) {
        self.confirmed = confirmed
    }

    /// Whether anything is neither confirmed nor known to concern the client no more.
    package var isOwed: Bool { latest > max(confirmed, moot) }

    // MARK: What happens to the client

    /// A change concerns the client.
    ///
    /// - Parameter delay: By how long its push is spread; what waits already is not delayed.
    package mutating func changed(
        at sequence: UInt64, urgency: Urgency, delay: Int64 = 0, now: Int64
    ) {
        guard sequence > latest else { return }
        let wasPending = isPending
        latest = sequence
        carry(sequence, now)
        for index in addresses.indices { addresses[index].withheldUntil = .min }
        if wasPending {
            if urgency.rank > self.urgency.rank { self.urgency = urgency }
            heldUntil = min(heldUntil, now.later(by: delay))
        } else {
            self.urgency = urgency
            heldUntil = now.later(by: delay)
            pendingSince = now
        }
    }

    /// A stream that is open carries a change, and has its chance.
    private mutating func carry(_ sequence: UInt64, _ now: Int64) {
        guard streams > 0 else {
            uncarried = sequence
            carried.removeAll()
            return
        }
        if carried.count == Self.carriedMax { carried.removeLast() }
        carried.append((sequence, now.later(by: Self.grace)))
    }

    /// Until when the streams have their chance to say what an address has not said.
    private func graceEnd(beyond covered: UInt64) -> Int64 {
        guard uncarried <= max(covered, confirmed) else { return .min }
        return carried.first { $0.sequence > max(covered, confirmed) }?.until ?? .min
    }

    /// A stream opened; it says what is stale since its cursor.
    ///
    /// - Parameter cursor: What it resumed from; 0 when everything is stale for it.
    package mutating func streamOpened(resuming cursor: UInt64, now: Int64) {
        streams += 1
        heard()
        confirm(cursor)
        extendGrace(now)
    }

    /// A stream ended.
    package mutating func streamEnded(now: Int64) {
        streams = max(0, streams - 1)
        extendGrace(now)
    }

    /// The client acknowledged everything up to a cursor.
    package mutating func acknowledged(_ cursor: UInt64) {
        isKnownToAnswer = true
        heard()
        confirm(cursor)
    }

    /// The client polled, which confirms nothing.
    package mutating func polled() {
        isKnownToAnswer = true
        heard()
    }

    /// The client registered these addresses, in this order. Those it had before keep what is
    /// known of them. What it registered may be stale by changes that concerned nothing before.
    package mutating func register(_ ids: [UInt64]) {
        moot = 0
        addresses = ids.map { id in addresses.first { $0.id == id } ?? Address(id: id) }
    }

    /// The log lost a tail: what was confirmed or delivered is worth nothing any more, and
    /// everything is owed as of `head`.
    package mutating func forgetPositions(head: UInt64, now: Int64) {
        latest = head
        uncarried = head
        pendingSince = now
        confirmed = 0
        moot = 0
        for index in addresses.indices {
            addresses[index].delivered = 0
            addresses[index].spokeSince = 0
            addresses[index].givenUp = 0
            addresses[index].underWay = nil
        }
    }

    // MARK: What to do

    /// What to do now. The same until something happens or the time named has come.
    package func next(now: Int64) -> Step {
        guard let turn = turn(now: now) else { return .rest }
        return turn.due <= now ? .push(address: turn.address.id) : .wait(until: turn.due)
    }

    /// The address whose turn it is, and when it is pushed to; `nil` when nothing is to be done.
    func turn(now: Int64) -> (address: Address, due: Int64)? {
        guard isOwed else { return nil }
        var earliest: (address: Address, due: Int64)?
        search: for address in addresses where address.isOpen {
            let isFailing = address.failures >= Self.failuresMax
            let due: Int64
            if address.underWay != nil {
                if isFailing { continue }
                break
            } else if address.covered < latest {
                due = max(
                    graceUntil, graceEnd(beyond: address.covered), heldUntil, address.firstPush)
            } else if address.delivered < latest {
                continue
            } else if isKnownToAnswer, address.awaitsSign {
                if address.isExhausted(at: latest) { continue }
                due = max(address.repeatAt, address.firstPush)
            } else {
                break
            }
            if due <= now { return (address, due) }
            if earliest.map({ due < $0.due }) ?? true { earliest = (address, due) }
            if !isFailing { break search }
        }
        return earliest
    }

    /// What an address waits for until `due`, as ``turn(now:)`` names that.
    func reason(_ address: Address, due: Int64) -> Outcome.Reason {
        if due == address.withheldUntil { return .budget }
        if due == address.notBefore { return .retry }
        return due == heldUntil ? .spread : .grace
    }

    /// Up to where nothing has to be said to an address any more, when it is pushed to now. What
    /// is pushed again says all that was not confirmed.
    package func unsaid(at id: UInt64) -> UInt64 {
        guard let address = addresses.first(where: { $0.id == id }),
            address.delivered < latest
        else { return confirmed }
        return max(confirmed, address.delivered)
    }

    /// Whether an address took a push that said everything.
    package func hasHeardAll(at id: UInt64) -> Bool {
        addresses.contains { $0.id == id && $0.delivered >= latest }
    }

    /// From where the last push that an address took spoke; 0 when it took none.
    package func spokeSince(at id: UInt64) -> UInt64 {
        addresses.first { $0.id == id }?.spokeSince ?? 0
    }

    /// Which of the attempts at an address is next: how many failed in a row.
    package func failures(at id: UInt64) -> Int {
        addresses.first { $0.id == id }?.failures ?? 0
    }

    /// Whether the push that is under way to an address is the one composed at `position`. An
    /// address that was taken back and registered again knows nothing of those before.
    package func isUnderWay(_ id: UInt64, at position: UInt64) -> Bool {
        addresses.contains { $0.id == id && $0.underWay?.position == position }
    }

    /// A push was to be made, but at `position` nothing is stale: the change concerns nothing that
    /// is still registered.
    package mutating func nothingIsStale(at position: UInt64) {
        moot = max(moot, position)
    }

    /// A push to the address was composed at `position`, speaks of what became stale after
    /// `since`, and is under way until its outcome is known.
    package mutating func began(_ id: UInt64, at position: UInt64, since: UInt64) {
        update(id) { address, latest in
            address.underWay = .init(
                position: position, since: since, isRepeat: address.delivered >= latest)
        }
    }

    /// The address took the push.
    package mutating func delivered(_ id: UInt64, now: Int64) {
        update(id) { address, _ in
            guard let push = address.underWay else { return }
            address.underWay = nil
            address.failures = 0
            address.delivered = max(address.delivered, push.position)
            address.spokeSince = push.since
            address.awaitsSign = !push.wasHeardOf
            if push.isRepeat, !push.wasHeardOf {
                address.repeats = min(address.repeats + 1, Self.repeatsMax)
            }
            address.notBefore = .min
            address.withheldUntil = .min
            address.repeatAt = now.later(
                by: Self.repeatWaits[min(address.repeats, Self.repeatWaits.count - 1)])
        }
    }

    /// The address took a push that a person asked for, composed at `position`: what it said is
    /// not said again. How the address fares is as it was.
    package mutating func resent(_ id: UInt64, at position: UInt64, since: UInt64, now: Int64) {
        update(id) { address, _ in
            guard position > address.delivered else { return }
            address.delivered = position
            address.spokeSince = since
            address.awaitsSign = true
            address.repeatAt = now.later(by: Self.repeatWaits[0])
        }
    }

    /// The address took a push of something else: it may be tried again at once.
    package mutating func recovered(_ id: UInt64) {
        update(id) { address, _ in
            address.failures = 0
            address.notBefore = .min
        }
    }

    /// The push failed, and the address is not tried again before `until`.
    package mutating func failed(_ id: UInt64, until: Int64) {
        update(id) { address, _ in
            address.underWay = nil
            address.failures = min(address.failures + 1, 1_000)
            address.notBefore = until
        }
    }

    /// The push was refused for good: it is not made again before something else is stale.
    package mutating func gaveUp(_ id: UInt64) {
        update(id) { address, _ in
            address.givenUp = max(address.givenUp, address.underWay?.position ?? 0)
            address.underWay = nil
        }
    }

    /// The push was withheld by the budget: the address is not tried again before `until`, or
    /// before more is stale. All that is stale by then rides with it.
    package mutating func withheld(_ id: UInt64, until: Int64) {
        update(id) { address, _ in address.withheldUntil = until }
    }

    /// The address may be pushed to again, or not: it is quarantined, or its topic is stopped.
    package mutating func setUsable(_ id: UInt64, _ isUsable: Bool) {
        update(id) { address, _ in
            address.isUsable = isUsable
            address.underWay = nil
        }
    }

    // MARK: -

    /// Whether the address whose turn it is has something to say that is not under way.
    private var isPending: Bool {
        guard isOwed else { return false }
        for address in addresses where address.isOpen {
            if address.covered < latest { return true }
            let isPassedOver =
                address.underWay == nil
                && (address.delivered < latest
                    || isKnownToAnswer && address.isExhausted(at: latest))
            if !isPassedOver { return false }
        }
        return false
    }

    private mutating func confirm(_ cursor: UInt64) {
        guard cursor > confirmed else { return }
        confirmed = cursor
        carried.removeAll { $0.sequence <= cursor }
    }

    /// A client whose streams come and go without confirming anything is pushed to all the same.
    private mutating func extendGrace(_ now: Int64) {
        let end = now.later(by: Self.grace)
        let bound = isPending ? pendingSince.later(by: 2 * Self.grace) : .max
        graceUntil = max(graceUntil, min(end, bound))
    }

    private mutating func heard() {
        for index in addresses.indices {
            addresses[index].awaitsSign = false
            addresses[index].repeats = 0
            addresses[index].underWay?.wasHeardOf = true
        }
    }

    private mutating func update(_ id: UInt64, _ change: (inout Address, UInt64) -> Void) {
        guard let index = addresses.firstIndex(where: { $0.id == id }) else { return }
        change(&addresses[index], latest)
    }
}

extension Urgency {
    /// How urgent it is, in numbers that are persisted.
    var rank: UInt8 {
        switch self {
        case .veryLow: 0
        case .low: 1
        case .normal: 2
        case .high: 3
        }
    }

    init(rank: UInt8) {
        self = Self.allCases.first { $0.rank == rank } ?? .normal
    }
}
