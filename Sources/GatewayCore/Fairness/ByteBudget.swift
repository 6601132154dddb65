/// A budget of bytes that keys share: the reserved total never exceeds it, and no key gets all of
/// it.
///
/// A key may reserve at most ``share`` times the rest, so that a single key gets 4/5 of the budget
/// and a new key always finds space. A reservation that does not fit waits: first in, first out for
/// each key, and round robin between keys. A waiter holds no part of the budget
/// (``extend(by:for:)`` succeeds at once or not at all), so waiting cannot deadlock.
package struct ByteBudget<Key: Hashable & Sendable, Waiter: Sendable>: Sendable {
    /// The result of a reservation.
    package enum Outcome: Sendable, Hashable {
        /// The bytes are reserved.
        case granted
        /// The waiter will be returned by a later `release`, or removed by ``cancel(_:)``.
        case waits(id: UInt64)
        /// Too many reservations are waiting.
        case refused
    }

    private struct Waiting: Sendable {
        let id: UInt64
        let bytes: Int
        let waiter: Waiter
    }

    /// The maximum number of bytes reserved at one time.
    package let limit: Int
    /// The multiple of the remaining bytes that a key may reserve.
    private let share = 4
    private let waitingMax: Int
    private var held: [Key: Int] = [:]
    private var queues: [Key: [Waiting]] = [:]
    /// The keys with waiters, in the order of their turns.
    private var turns: [Key] = []
    private var nextID: UInt64 = 0

    /// The bytes reserved now.
    package private(set) var used = 0
    /// The number of waiters.
    package private(set) var waitingCount = 0

    /// Creates a budget with nothing reserved.
    package init(limit: Int, waitingMax: Int) {
        self.limit = max(1, limit)
        self.waitingMax = max(0, waitingMax)
    }

    /// Reserves bytes for a key, or queues `waiter`. More bytes than the whole budget are granted
    /// when nothing else is reserved.
    package mutating func reserve(_ bytes: Int, for key: Key, _ waiter: Waiter) -> Outcome {
        if queues[key] == nil, fits(bytes, key) {
            hold(bytes, key)
            return .granted
        }
        let own = queues[key]?.count ?? 0
        guard own == 0 ? waitingCount < waitingMax : own < share * (waitingMax - waitingCount - 1)
        else { return .refused }
        nextID += 1
        if own == 0 { turns.append(key) }
        queues[key, default: []].append(Waiting(id: nextID, bytes: bytes, waiter: waiter))
        waitingCount += 1
        return .waits(id: nextID)
    }

    /// Reserves additional bytes for a key with a reservation; returns whether they were available.
    package mutating func extend(by bytes: Int, for key: Key) -> Bool {
        guard fits(bytes, key) else { return false }
        hold(bytes, key)
        return true
    }

    /// Releases bytes; returns the waiters whose reservations are granted as a result.
    package mutating func release(_ bytes: Int, for key: Key) -> [Waiter] {
        let rest = (held[key] ?? 0) - bytes
        held[key] = rest > 0 ? rest : nil
        used = max(0, used - bytes)
        return grant()
    }

    /// Removes a waiter. Returns it if it was still waiting, and the waiters that are granted as a
    /// result.
    package mutating func cancel(_ id: UInt64, of key: Key) -> (waiter: Waiter?, granted: [Waiter])
    {
        guard let place = queues[key]?.firstIndex(where: { $0.id == id }) else { return (nil, []) }
        let waiter = queues[key]?.remove(at: place).waiter
        waitingCount -= 1
        if queues[key]?.isEmpty ?? true {
            queues[key] = nil
            turns.removeAll { $0 == key }
        }
        return (waiter, grant())
    }

    private func fits(_ bytes: Int, _ key: Key) -> Bool {
        if used == 0 { return true }
        let rest = limit - used - bytes
        guard rest >= 0 else { return false }
        guard let own = held[key] else { return true }
        let (most, overflows) = rest.multipliedReportingOverflow(by: share)
        return overflows || own + bytes <= most
    }

    private mutating func hold(_ bytes: Int, _ key: Key) {
        used += bytes
        held[key, default: 0] += bytes
    }

    /// Grants the reservations that fit, one waiter of each key in turn, until none fits.
    private mutating func grant() -> [Waiter] {
        var granted: [Waiter] = []
        var passed = 0
        while passed < turns.count {
            let key = turns.removeFirst()
            guard let first = queues[key]?.first, fits(first.bytes, key) else {
                turns.append(key)
                passed += 1
                continue
            }
            hold(first.bytes, key)
            granted.append(first.waiter)
            queues[key]?.removeFirst()
            waitingCount -= 1
            passed = 0
            if queues[key]?.isEmpty ?? true { queues[key] = nil } else { turns.append(key) }
        }
        return granted
    }
}
