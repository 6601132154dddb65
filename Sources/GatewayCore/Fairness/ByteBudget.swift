import DequeModule

/// A budget of bytes that keys share, for bodies that grow as they arrive: no key gets all of it.
///
/// A key may reserve at most a multiple of the free bytes: four times for the first piece of a
/// body, three times for more of a small body, twice for more of a large one. So a single key gets
/// 4/5 of the budget, a new key always finds space, and within a key small bodies find space beside
/// large ones. Each key and multiple has a queue for what does not fit; the queues take turns.
///
/// A body that waits for more keeps what it has, so such bodies could wait for each other.
/// Therefore the first of them in each queue becomes its leader: it waits no more until it is
/// released. So some body always makes progress, and all keys together exceed the limit by at most
/// ``leadersMax`` bodies.
package struct ByteBudget<Key: Hashable & Sendable, Waiter: Sendable>: Sendable {
    /// The result of a reservation.
    package enum Outcome: Sendable, Hashable {
        /// The bytes are reserved.
        case granted
        /// The waiter will be returned by a later `release`, or removed by ``cancel(_:)``.
        case waits(Ticket)
        /// Too many bodies wait for their first piece.
        case refused
    }

    /// The place of a waiter.
    package struct Ticket: Sendable, Hashable {
        fileprivate let line: Line
        fileprivate let id: UInt64
    }

    fileprivate struct Line: Hashable, Sendable {
        let key: Key
        /// The multiple of the remaining bytes that the key may reserve.
        let share: Int
    }

    private struct Waiting: Sendable {
        let id: UInt64
        let bytes: Int
        let body: ObjectIdentifier
        let waiter: Waiter
    }

    /// The maximum number of bytes reserved at one time, apart from the leading bodies.
    package let limit: Int
    /// The multiples of the free bytes: for a first piece, and for more of a small or large body.
    private let firstShare = 4
    private let smallShare = 3
    private let largeShare = 2
    private let smallMax: Int
    /// The maximum number of bodies that lead at one time.
    private static var leadersMax: Int { 8 }
    private let waitingMax: Int
    private var held: [Key: Int] = [:]
    private var queues: [Line: Deque<Waiting>] = [:]
    /// The lines with waiters, in the order of their turns.
    private var turns: Deque<Line> = []
    /// The bodies that wait no more, and the line of growing bodies that each leads.
    private var leaders: [ObjectIdentifier: Line] = [:]
    private var led: Set<Line> = []
    private var nextID: UInt64 = 0

    /// The bytes reserved now.
    package private(set) var used = 0
    /// The number of bodies that wait for their first piece.
    package private(set) var waitingCount = 0

    /// Creates a budget with nothing reserved, where at most `waitingMax` bodies wait for their
    /// first piece, and a small body has at most `smallMax` bytes.
    package init(limit: Int, waitingMax: Int, smallMax: Int) {
        self.limit = max(1, limit)
        self.waitingMax = max(0, waitingMax)
        self.smallMax = smallMax
    }

    /// Reserves bytes for a body, or queues `waiter`. While nothing is reserved, a body may reserve
    /// more than the whole budget.
    ///
    /// - Parameters:
    ///   - body: The object that stands for the body.
    ///   - holding: The bytes that the body has reserved already.
    package mutating func reserve(
        _ bytes: Int, for key: Key, body: ObjectIdentifier, holding: Int, _ waiter: Waiter
    ) -> Outcome {
        let growing = holding + bytes <= smallMax ? smallShare : largeShare
        let line = Line(key: key, share: holding == 0 ? firstShare : growing)
        let isFirst = queues[line] == nil
        if leaders[body] != nil || isFirst && isGrantable(bytes, to: body, in: line) {
            hold(bytes, key)
            return .granted
        }
        if holding == 0 {
            let own = queues[line]?.count ?? 0
            let places = waitingMax - waitingCount
            guard own == 0 ? places > 0 : own < firstShare * (places - 1) else { return .refused }
            waitingCount += 1
        }
        nextID += 1
        if isFirst { turns.append(line) }
        queues[line, default: []].append(
            Waiting(id: nextID, bytes: bytes, body: body, waiter: waiter))
        return .waits(Ticket(line: line, id: nextID))
    }

    /// Releases all bytes of a body; returns the waiters whose reservations are then granted.
    package mutating func release(_ bytes: Int, for key: Key, body: ObjectIdentifier) -> [Waiter] {
        if let line = leaders.removeValue(forKey: body) { led.remove(line) }
        let rest = (held[key] ?? 0) - bytes
        held[key] = rest > 0 ? rest : nil
        used = max(0, used - bytes)
        return grant()
    }

    /// Removes a waiter. Returns it if it still waited, and the waiters that are then granted.
    package mutating func cancel(_ ticket: Ticket) -> (waiter: Waiter?, granted: [Waiter]) {
        let line = ticket.line
        // The ids of a line ascend: one below the first has been granted.
        guard let first = queues[line]?.first, first.id <= ticket.id,
            let place = queues[line]?.firstIndex(where: { $0.id == ticket.id })
        else { return (nil, []) }
        let waiter = queues[line]?.remove(at: place).waiter
        if line.share == firstShare { waitingCount -= 1 }
        if queues[line]?.isEmpty ?? true {
            queues[line] = nil
            turns.removeAll { $0 == line }
        }
        return (waiter, grant())
    }

    /// Whether the first body of a line may have bytes: they fit, or it leads from now on.
    private mutating func isGrantable(_ bytes: Int, to body: ObjectIdentifier, in line: Line)
        -> Bool
    {
        if fits(bytes, line) { return true }
        guard line.share != firstShare, leaders.count < Self.leadersMax, led.insert(line).inserted
        else { return false }
        leaders[body] = line
        return true
    }

    private func fits(_ bytes: Int, _ line: Line) -> Bool {
        if used == 0 { return true }
        let rest = limit - used - bytes
        guard rest >= 0 else { return false }
        guard let own = held[line.key] else { return true }
        let (most, overflows) = rest.multipliedReportingOverflow(by: line.share)
        return overflows || own + bytes <= most
    }

    private mutating func hold(_ bytes: Int, _ key: Key) {
        used += bytes
        held[key, default: 0] += bytes
    }

    /// Grants the reservations that may be, one waiter of each line in turn, until none may.
    private mutating func grant() -> [Waiter] {
        var granted: [Waiter] = []
        var passed = 0
        while passed < turns.count {
            let line = turns.removeFirst()
            guard let first = queues[line]?.first,
                isGrantable(first.bytes, to: first.body, in: line)
            else {
                turns.append(line)
                passed += 1
                continue
            }
            hold(first.bytes, line.key)
            granted.append(first.waiter)
            queues[line]?.removeFirst()
            if line.share == firstShare { waitingCount -= 1 }
            passed = 0
            if queues[line]?.isEmpty ?? true { queues[line] = nil } else { turns.append(line) }
        }
        return granted
    }
}
