import CCurl
import CurlMulti

/// The requests of one engine, on its thread.
struct DeliveryDriver: CurlDriver {
    /// What the thread is asked to do.
    enum Command: Sendable {
        case start(DeliveryOrder)
        case cancel(DeliveryCall)
    }

    private let gate: DeliveryGate
    private let terms: DeliveryTerms
    /// Every handle there is, each under way or in `idle`.
    private var slots: [DeliverySlot] = []
    private var idle: [DeliverySlot] = []
    /// When waiting requests are looked at next, in monotonic milliseconds.
    private var nextLook = Int64.min

    /// How often requests are looked at that libcurl has handed to no connection, in milliseconds.
    private static let lookInterval: Int32 = 250

    init(_ configuration: DeliveryEngine.Configuration, _ gate: DeliveryGate) {
        self.gate = gate
        terms = DeliveryTerms(configuration, gate)
    }

    mutating func obey(_ command: Command, _ multi: CurlMulti) {
        switch command {
        case .start(let order):
            if !start(order, multi) { leave(multi) }
        case .cancel(let call):
            guard let slot = slots.first(where: { $0.receiver === call }) else { return }
            finish(slot, .failure(.wasCancelled), multi)
        }
    }

    mutating func ended(_ easy: CurlEasy, _ code: CURLcode, _ multi: CurlMulti) {
        guard let context = easy.context else { return }
        // Sound: the context is the slot, which `slots` keeps alive as long as its handle.
        let slot = Unmanaged<DeliverySlot>.fromOpaque(context).takeUnretainedValue()
        finish(slot, slot.outcome(code), multi)
    }

    mutating func turned(_ multi: CurlMulti) -> Int32 {
        guard slots.count > idle.count else { return 60_000 }
        let now = DeliveryClock.system.now()
        if now >= nextLook {
            nextLook = now + Int64(Self.lookInterval)
            look(now, multi)
        }
        return Self.lookInterval
    }

    /// Ends what waits in vain for a connection. libcurl does not: it forgets the deadline of a
    /// request that waits for a connection to be gone, and after a GOAWAY one is not gone before
    /// the last of its streams has ended, though its peer has fallen silent.
    private mutating func look(_ now: Int64, _ multi: CurlMulti) {
        for slot in slots where slot.receiver != nil && !slot.isSent && slot.isOverdue(now) {
            finish(slot, .failure(.wasNotSent), multi)
        }
    }

    mutating func stop(_ multi: CurlMulti) {
        for slot in slots where slot.receiver != nil {
            finish(slot, .failure(.isClosed), multi)
        }
        for slot in slots { slot.free() }
        gate.countHandles(-slots.count)
        slots.removeAll()
        idle.removeAll()
    }

    mutating func stopped() {
        gate.ended()
    }

    /// - Returns: Whether the request is under way; if not, its receiver knows.
    private mutating func start(_ order: DeliveryOrder, _ multi: CurlMulti) -> Bool {
        var error = DeliveryError(.noMemory, "libcurl has no memory")
        if let slot = idle.popLast() ?? newSlot() {
            if let refusal = slot.begin(order) {
                error = refusal
            } else if multi.add(slot.easy) {
                return true
            }
            _ = slot.end()
            idle.append(slot)
        }
        order.receiver.received(.failure(error), for: order.tag)
        return false
    }

    private mutating func newSlot() -> DeliverySlot? {
        guard let slot = DeliverySlot(terms) else { return nil }
        slots.append(slot)
        gate.countHandles(1)
        return slot
    }

    private mutating func finish(
        _ slot: DeliverySlot, _ outcome: DeliveryOutcome, _ multi: CurlMulti
    ) {
        multi.remove(slot.easy)
        let (receiver, tag) = slot.end()
        idle.append(slot)
        leave(multi)
        // Last, so that whoever waits for the end finds the request gone.
        receiver?.received(outcome, for: tag)
    }

    /// Lets in who waits, now that a request is gone.
    private mutating func leave(_ multi: CurlMulti) {
        while let next = gate.leave() {
            if start(next.order, multi) { return }
        }
    }
}
