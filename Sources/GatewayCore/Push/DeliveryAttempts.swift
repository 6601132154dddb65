import WidgetModel

/// The notifications owed to one client in one category (its timelines, its recommendation sets, a
/// control or a Live Activity), and the address for the next push.
///
/// There is no queue: the client is owed everything that affects it and that it has not confirmed.
/// Streams and polls notify without confirming; an accepted push has reported everything up to the
/// position at which it was composed. Addresses are used in the client's order of preference, each
/// only if those before it fail.
///
/// Times are on the caller's monotonic clock, ms.
package struct DeliveryAttempts: Sendable {
    /// The grace period, ms: the time for a client to confirm a change sent on a stream, and to
    /// reconnect after its stream ended.
    package static let grace: Int64 = 20_000
    /// The interval at which the id of a client's streams is read while a collapse window keeps it
    /// below a change, ms.
    static let idInterval: Int64 = 5_000
    /// The number of repeated pushes to a client that usually polls or acknowledges, but did not.
    package static let repeatsMax = 3
    /// The waits for the client to poll or acknowledge after each push, ms.
    package static let repeatWaits: [Int64] = [300_000, 1_800_000, 10_800_000]
    /// The number of consecutive failures after which the next address is used as well.
    package static let failuresMax = 3

    /// A push address with its state.
    package struct Address: Sendable, Hashable {
        /// The hash that identifies the address; another token is another address.
        package let id: UInt64
        /// The sequence up to which nothing is owed here: accepted pushes reported it, or it did
        /// not concern the client. It follows the log only when a change comes.
        package internal(set) var delivered: UInt64 = 0
        /// The last accepted push reported changes after this sequence; 0 if it reported
        /// everything, and before the first push. A client known to answer may not have reacted to
        /// earlier pushes: then their changes are included.
        package internal(set) var spokeSince: UInt64 = 0
        /// The sequence up to which no push is repeated, after a permanent rejection.
        package internal(set) var givenUp: UInt64 = 0
        /// The number of consecutive failures.
        package internal(set) var failures = 0
        /// The number of repeated pushes since the client's last contact.
        package internal(set) var repeats = 0
        /// Whether the client has not been in contact since the last accepted push.
        package internal(set) var awaitsSign = false
        /// Whether pushes to the address are allowed.
        package internal(set) var isUsable = true
        /// Whether the configuration allows pushes to the address at all. Not stored.
        package internal(set) var isConfigured = true
        /// Whether an accepted push ended the Live Activity at the address: nothing is pushed to it
        /// again, whatever is registered or configured.
        package internal(set) var hasEnded = false
        /// The cause of the last push; `nil` before the first one since the start.
        package internal(set) var cause: PushCause?
        /// The earliest time of the next push after a failure.
        var notBefore = Int64.min
        /// The time at which an accepted push is repeated if the client makes no contact.
        var repeatAt = Int64.min
        /// The time at which the budget allows the stale content; checked again when it grows.
        var withheldUntil = Int64.min
        /// The push in flight.
        var underWay: UnderWay?

        struct UnderWay: Hashable {
            let number: UInt64
            let position: UInt64
            let since: UInt64
            let isRepeat: Bool
            var wasHeardOf = false
        }

        /// Whether pushes are sent to it.
        var isOpen: Bool { isUsable && isConfigured && !hasEnded }
        /// The earliest time of the next push.
        var firstPush: Int64 { max(notBefore, withheldUntil) }
        /// The sequence up to which nothing is left to report here after the push in flight.
        var covered: UInt64 { max(delivered, givenUp, underWay?.position ?? 0) }
        /// Returns whether it accepted a push up to `latest` without any contact of the client
        /// since, after all repeats, or after those before a permanent rejection.
        func isExhausted(at latest: UInt64) -> Bool {
            awaitsSign && (repeats >= DeliveryAttempts.repeatsMax || givenUp >= latest)
        }
    }

    /// An action for the caller to perform.
    package enum Step: Sendable, Hashable {
        /// Do nothing until the next event.
        case rest
        /// Do nothing until this time or the next event.
        case wait(until: Int64)
        /// Push to the address, if something is stale and the budget allows it.
        case push(address: UInt64)
    }

    /// The latest change that affects the client.
    package internal(set) var latest: UInt64 = 0
    /// The sequence up to which the client acknowledged everything, or resumed a stream.
    package internal(set) var confirmed: UInt64 = 0
    /// The highest urgency of the changes waiting to be pushed.
    package internal(set) var urgency = Urgency.normal
    /// Whether the client ever polled or acknowledged.
    package internal(set) var isKnownToAnswer = false
    /// The addresses in order of preference.
    package internal(set) var addresses: [Address] = []
    /// The last result of ``stamped(wall:)``; 0 before the first.
    package internal(set) var stamp: Int64 = 0
    /// The oldest accepted start whose activity may still be registered; 0 for none.
    var startedSince: UInt64 = 0

    /// The number of open streams.
    var streams = 0
    /// The end of the grace period for a client whose stream opened or ended.
    var graceUntil = Int64.min
    /// The changes sent on a stream, each with the end of its grace period, and whether the id of
    /// the streams has passed it: only then can a cursor confirm it. Bounded: the last entry
    /// represents all later changes.
    var carried: [(sequence: UInt64, until: Int64, isPassed: Bool)] = []
    /// The latest change that was not sent on a stream.
    var uncarried: UInt64 = 0
    /// The time until which the change is spread.
    var heldUntil = Int64.min
    /// The time of the oldest change waiting to be pushed.
    var pendingSince = Int64.min
    /// The sequence up to which nothing was owed when the oldest unreported change came.
    var told: UInt64 = 0
    /// The maximum number of separate entries for changes sent on a stream.
    private static let carriedMax = 8

    /// Whether any change is not confirmed.
    package var isOwed: Bool { latest > confirmed }

    /// Whether a change is owed that no address has accepted a push for.
    var isUnreported: Bool { isOwed && reported < latest }

    /// The sequence up to which every change was confirmed or accepted by an address.
    var reported: UInt64 { addresses.reduce(max(told, confirmed)) { max($0, $1.delivered) } }

    // MARK: Events of the client

    /// Records a change that affects the client.
    ///
    /// - Parameters:
    ///   - since: The sequence up to which every change that affects the client is owed already;
    ///     `nil` for all before this one.
    ///   - delay: The delay of its push when spread, ms; waiting changes are not delayed.
    ///   - isNarrow: Whether streams that are limited to some kinds carry it.
    ///   - id: The id of the streams, up to which they sent everything.
    package mutating func changed(
        at sequence: UInt64, after since: UInt64? = nil, urgency: Urgency, delay: Int64 = 0,
        isNarrow: Bool = false, sentUpTo id: UInt64 = .max, now: Int64
    ) {
        guard sequence > latest else { return }
        let wasPending = isPending
        let since = since ?? sequence - 1
        let base = settled(at: since, now: now)
        told = max(told, base)
        for index in addresses.indices {
            let isTold = !isOwed || addresses[index].delivered >= latest
            addresses[index].delivered = max(addresses[index].delivered, isTold ? since : base)
            addresses[index].withheldUntil = .min
        }
        latest = sequence
        carry(sequence, isCarried: streams > 0 || isNarrow, sentUpTo: id, now)
        if wasPending {
            if urgency.rank > self.urgency.rank { self.urgency = urgency }
            heldUntil = min(heldUntil, now.later(by: delay))
        } else {
            self.urgency = urgency
            heldUntil = now.later(by: delay)
            pendingSince = now
        }
    }

    /// Records whether an open stream carries a change, which starts its grace period.
    private mutating func carry(
        _ sequence: UInt64, isCarried: Bool, sentUpTo id: UInt64, _ now: Int64
    ) {
        guard isCarried else {
            uncarried = sequence
            carried.removeAll()
            return
        }
        if carried.count == Self.carriedMax { carried.removeLast() }
        carried.append((sequence, now, false))
        streamsSent(upTo: id, from: carried.count - 1, now: now)
    }

    /// Records the id of the client's streams. A change's grace period begins when the id has
    /// passed it, because no cursor can confirm it before.
    ///
    /// - Parameter first: The first of the changes to judge.
    mutating func streamsSent(upTo id: UInt64, from first: Int = 0, now: Int64) {
        for index in carried.indices.dropFirst(first) {
            let isPassed = carried[index].sequence <= id
            if isPassed, carried[index].isPassed { continue }
            carried[index].isPassed = isPassed
            carried[index].until = now.later(by: isPassed ? Self.grace : Self.idInterval)
        }
    }

    /// Returns the end of the grace period in which streams can deliver changes that an address has
    /// not reported.
    private func graceEnd(beyond covered: UInt64) -> Int64 {
        guard uncarried <= max(covered, confirmed) else { return .min }
        return carried.first { $0.sequence > max(covered, confirmed) }?.until ?? .min
    }

    /// Records the opening of a stream, which reports everything stale since its cursor.
    ///
    /// - Parameter cursor: The cursor it resumed at; 0 when everything is stale for it.
    package mutating func streamOpened(resuming cursor: UInt64, now: Int64) {
        streams += 1
        heard()
        confirm(cursor)
        extendGrace(now)
    }

    /// Records that a stream is open whose opening will be reported a moment later, and gives the
    /// waiting change the stream's grace period.
    ///
    /// - Parameter id: The id of the client's streams, up to which they sent everything.
    mutating func streamIsOpen(sentUpTo id: UInt64, now: Int64) {
        heard()
        guard isPending else { return }
        if id < latest { pendingSince = now }
        graceUntil = max(graceUntil, pendingSince.later(by: Self.grace))
    }

    /// Restarts the grace period of restored attempts: reading all of them takes a while.
    mutating func restartGrace(now: Int64) {
        if graceUntil > pendingSince {
            graceUntil = now.later(by: graceUntil.elapsed(since: pendingSince))
        }
        pendingSince = now
    }

    package mutating func streamEnded(now: Int64) {
        streams = max(0, streams - 1)
        extendGrace(now)
    }

    /// Records that the client acknowledged everything up to a cursor.
    package mutating func acknowledged(_ cursor: UInt64) {
        isKnownToAnswer = true
        heard()
        confirm(cursor)
    }

    /// Records a poll, which confirms nothing.
    package mutating func polled() {
        isKnownToAnswer = true
        heard()
    }

    /// Sets the client's registered addresses, in order. Addresses it had before keep their state.
    package mutating func register(_ ids: [UInt64], now: Int64 = .min) {
        told = settled(at: max(told, latest), now: now)
        addresses = ids.map { id in
            var address = address(id) ?? Address(id: id)
            address.delivered = max(address.delivered, told)
            return address
        }
    }

    /// Returns the sequence up to which no address has anything to report; `position` if everything
    /// was reported.
    ///
    /// A change that one address accepted is not pushed to others, unless it may not have arrived:
    /// the client is known to answer and has not, or its time to answer has not passed.
    private func settled(at position: UInt64, now: Int64) -> UInt64 {
        let silent = addresses.filter {
            $0.awaitsSign && $0.delivered > confirmed && (isKnownToAnswer || now < $0.repeatAt)
        }
        return silent.map(\.spokeSince).min() ?? (isUnreported ? reported : position)
    }

    /// Handles the loss of a log tail: confirmations and deliveries become void, and everything is
    /// owed as of `head`, which open streams report, too.
    package mutating func forgetPositions(head: UInt64, now: Int64) {
        latest = head
        (uncarried, carried) = (0, [])
        carry(head, isCarried: streams > 0, sentUpTo: head, now)
        pendingSince = now
        told = 0
        confirmed = 0
        startedSince = min(startedSince, 1)
        for index in addresses.indices {
            addresses[index].delivered = 0
            addresses[index].spokeSince = 0
            addresses[index].givenUp = 0
            addresses[index].underWay = nil
        }
    }

    // MARK: Decisions

    /// Returns the next action. It stays the same until the next event or the returned time.
    package func next(now: Int64) -> Step {
        guard let turn = turn(now: now) else { return .rest }
        return turn.due <= now ? .push(address: turn.address.id) : .wait(until: turn.due)
    }

    /// Returns the next address to push to and the time of its push; `nil` when there is none.
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
                due = max(address.repeatAt, heldUntil, address.firstPush)
            } else {
                break
            }
            if due <= now { return (address, due) }
            if earliest.map({ due < $0.due }) ?? true { earliest = (address, due) }
            if !isFailing { break search }
        }
        return earliest
    }

    /// Returns the reason why an address waits until `due`, as returned by ``turn(now:)``.
    func reason(_ address: Address, due: Int64) -> Outcome.Reason {
        if due == address.withheldUntil { return .budget }
        if due == address.notBefore { return .retry }
        return due == heldUntil ? .spread : .grace
    }

    /// Returns the sequence after which a push sent now must report changes to an address. A
    /// repeated push reports what those before it did.
    package func unsaid(at id: UInt64) -> UInt64 {
        guard let address = address(id) else { return confirmed }
        let isRepeat = address.delivered >= latest && address.awaitsSign
        return max(confirmed, isRepeat ? address.spokeSince : address.delivered)
    }

    /// Returns the sequence after which the client may not have read what an address accepted, or is
    /// being sent: a service may replace a push that it has not delivered by the next one.
    func unread(at id: UInt64) -> UInt64 {
        guard let address = address(id) else { return confirmed }
        let accepted =
            address.awaitsSign ? min(address.spokeSince, address.delivered) : address.delivered
        return max(confirmed, min(accepted, address.underWay?.since ?? accepted))
    }

    /// Returns whether an address accepted a push that reported everything.
    package func hasHeardAll(at id: UInt64) -> Bool {
        address(id).map { $0.delivered >= latest } ?? false
    }

    /// Returns the state of an address; `nil` if it is not registered.
    package func address(_ id: UInt64) -> Address? { addresses.first { $0.id == id } }

    /// Records that nothing was stale at `position` when a push was due: the change affects no
    /// current subscription, and nothing is owed.
    package mutating func nothingIsStale(at position: UInt64) {
        latest = confirmed
        told = max(told, position)
    }

    /// Records that nothing is stale at `position` of what the client has not confirmed: no address
    /// has anything to report or to repeat.
    mutating func nothingIsOwed(at position: UInt64) {
        nothingIsStale(at: position)
        carried.removeAll()
        for index in addresses.indices { addresses[index].spokeSince = position }
    }

    /// Records that the push of this number to the address was composed at `position`, reporting
    /// changes after `since`, and is in flight.
    package mutating func began(
        _ id: UInt64, number: UInt64 = 0, at position: UInt64, since: UInt64
    ) {
        let cause = cause(at: id)
        update(id) { address, latest in
            address.cause = cause
            address.underWay = .init(
                number: number, position: position, since: since,
                isRepeat: address.delivered >= latest)
        }
    }

    /// Returns the timestamp of a push, seconds since 1970, before its content is requested. It is
    /// higher than the one before even if the clock was set back, so that no device takes older
    /// content for newer.
    package mutating func stamped(wall seconds: Int64) -> Int64 {
        startedSince = started(by: seconds)
        stamp = max(seconds, stamp.later(by: 1))
        return stamp
    }

    /// Records that a start was accepted.
    mutating func started(at sequence: UInt64) {
        if startedSince == 0 { startedSince = sequence }
    }

    /// Returns ``startedSince`` at a time, seconds since 1970. APNs stores a start as long as an
    /// activity lives, which then begins.
    func started(by seconds: Int64) -> UInt64 {
        seconds > stamp.later(by: 2 * APNsPushForm.activityLifetime) ? 0 : startedSince
    }

    /// Records that the address accepted the push.
    ///
    /// - Parameters:
    ///   - awaits: Whether it makes the client answer. Without an answer it is then repeated.
    ///   - ends: Whether nothing may be pushed to the address again.
    package mutating func delivered(
        _ id: UInt64, now: Int64, awaits: Bool = true, ends: Bool = false
    ) {
        let isKnown = isKnownToAnswer
        update(id) { address, _ in
            guard let push = address.underWay else { return }
            address.underWay = nil
            address.failures = 0
            address.delivered = max(address.delivered, push.position)
            address.spokeSince =
                isKnown && address.awaitsSign ? min(address.spokeSince, push.since) : push.since
            address.awaitsSign = awaits && !push.wasHeardOf
            if ends { address.hasEnded = true }
            if push.isRepeat, !push.wasHeardOf {
                address.repeats = min(address.repeats + 1, Self.repeatsMax)
            }
            address.notBefore = .min
            address.withheldUntil = .min
            address.repeatAt = now.later(
                by: Self.repeatWaits[min(address.repeats, Self.repeatWaits.count - 1)])
        }
    }

    /// Records that the address accepted a push requested by a person, composed at `position`: its
    /// content is not sent again. The failures of the address are unchanged. The other parameters
    /// are those of ``delivered(_:now:awaits:ends:)``.
    package mutating func resent(
        _ id: UInt64, at position: UInt64, since: UInt64, now: Int64, awaits: Bool = true,
        ends: Bool = false
    ) {
        update(id) { address, _ in
            address.cause = .manual
            if ends { address.hasEnded = true }
            guard position > address.delivered else { return }
            address.delivered = position
            address.spokeSince = since
            address.awaitsSign = awaits
            address.repeatAt = now.later(by: Self.repeatWaits[0])
        }
    }

    /// Records that the address accepted another push, so that it may be retried at once.
    package mutating func recovered(_ id: UInt64) {
        update(id) { address, _ in
            address.failures = 0
            address.notBefore = .min
        }
    }

    /// Records that the push failed, or was not sent, which is not counted; the address is not
    /// retried before `until`.
    package mutating func failed(_ id: UInt64, until: Int64, isCounted: Bool = true) {
        update(id) { address, _ in
            address.underWay = nil
            address.failures = min(address.failures + (isCounted ? 1 : 0), 1_000)
            address.notBefore = until
        }
    }

    /// Records that the push was rejected permanently; it is not repeated before something else
    /// becomes stale.
    package mutating func gaveUp(_ id: UInt64) {
        update(id) { address, _ in
            address.givenUp = max(address.givenUp, address.underWay?.position ?? 0)
            address.underWay = nil
        }
    }

    /// Records that the budget withheld the push; the address is not retried before `until`, or
    /// before more becomes stale. The next push then includes everything.
    package mutating func withheld(_ id: UInt64, until: Int64) {
        update(id) { address, _ in address.withheldUntil = until }
    }

    /// Sets whether pushes to the address are allowed; not while it is quarantined or its topic is
    /// stopped.
    package mutating func setUsable(_ id: UInt64, _ isUsable: Bool) {
        update(id) { address, _ in
            address.isUsable = isUsable
            address.underWay = nil
        }
    }

    // MARK: -

    /// Whether the address whose turn it is has something to report that is not in flight.
    var isPending: Bool {
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

    mutating func confirm(_ cursor: UInt64) {
        guard cursor > confirmed else { return }
        confirmed = cursor
        carried.removeAll { $0.sequence <= cursor }
    }

    /// Limits the grace period, so that a client is pushed to even if its streams come and go
    /// without confirming anything.
    private mutating func extendGrace(_ now: Int64) {
        let end = now.later(by: Self.grace)
        let bound = isPending ? pendingSince.later(by: 2 * Self.grace) : .max
        graceUntil = max(graceUntil, min(end, bound))
    }

    mutating func heard() {
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
