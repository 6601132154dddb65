import NIOCore
import NIOPosix

/// What is told when its deadline has passed.
package protocol DeadlineOwner: AnyObject {
    /// Called on the event loop, once.
    func deadlinePassed()
}

/// The deadlines of one event loop that are all set equally far ahead: as they pass in the order in
/// which they were set, one timer serves them all, and a connection that keeps its deadline costs
/// none. Used by the loop's thread only.
package final class DeadlineQueue {
    /// A deadline that was set.
    package struct Deadline {
        fileprivate let queue: DeadlineQueue
        fileprivate let slot: Int
        fileprivate let serial: UInt64

        /// Nothing is told of it any more; of one that has passed nothing more was to be told.
        package func cancel() { queue.cancel(self) }
    }

    private struct Entry {
        let time: NIODeadline
        let slot: Int
        let serial: UInt64
    }

    private struct Slot {
        /// Which of the deadlines that had the slot.
        var serial: UInt64 = 0
        var owner: (any DeadlineOwner)?
    }

    private let loop: any EventLoop
    private let ahead: TimeAmount
    private var entries = CircularBuffer<Entry>()
    private var slots: [Slot] = []
    private var freeSlots: [Int] = []
    private var isTimed = false

    private init(_ loop: any EventLoop, _ ahead: TimeAmount) {
        self.loop = loop
        self.ahead = ahead
    }

    private final class Queues {
        var all: [DeadlineQueue] = []
    }

    private nonisolated(unsafe) static let ofThreads = ThreadSpecificVariable<Queues>()
    // Sound: the variable holds one value per thread and hands each thread its own only.

    /// Has `owner` told when `ahead` has gone by; `loop` is the one that runs on this thread.
    package static func set(
        _ ahead: TimeAmount, _ loop: any EventLoop, for owner: any DeadlineOwner
    ) -> Deadline {
        loop.assertInEventLoop()
        let queues = ofThreads.currentValue ?? Queues()
        // There are as many as there are settings of time: a handful.
        for queue in queues.all where queue.ahead == ahead && queue.loop === loop {
            return queue.set(owner)
        }
        let queue = DeadlineQueue(loop, ahead)
        queues.all.append(queue)
        ofThreads.currentValue = queues
        return queue.set(owner)
    }

    private func set(_ owner: any DeadlineOwner) -> Deadline {
        let slot = freeSlots.popLast() ?? slots.count
        if slot == slots.count { slots.append(Slot()) }
        slots[slot].owner = owner
        let entry = Entry(time: .now() + ahead, slot: slot, serial: slots[slot].serial)
        entries.append(entry)
        if !isTimed { setTimer(entry.time) }
        return Deadline(queue: self, slot: slot, serial: entry.serial)
    }

    private func cancel(_ deadline: Deadline) {
        guard slots[deadline.slot].serial == deadline.serial else { return }
        free(deadline.slot)
        while let first = entries.first, !isSet(first) { entries.removeFirst() }
    }

    private func isSet(_ entry: Entry) -> Bool { slots[entry.slot].serial == entry.serial }

    private func free(_ slot: Int) {
        slots[slot].owner = nil
        slots[slot].serial &+= 1
        freeSlots.append(slot)
    }

    /// The timer may come too early, when what it was for is cancelled: it then is set anew.
    private func setTimer(_ time: NIODeadline) {
        isTimed = true
        _ = loop.assumeIsolated().scheduleTask(deadline: time) {
            self.isTimed = false
            self.tellOverdue()
        }
    }

    private func tellOverdue() {
        let now = NIODeadline.now()
        while let first = entries.first, first.time <= now || !isSet(first) {
            entries.removeFirst()
            guard isSet(first) else { continue }
            let owner = slots[first.slot].owner
            free(first.slot)
            owner?.deadlinePassed()
        }
        if !isTimed, let first = entries.first { setTimer(first.time) }
    }
}
