import Synchronization

/// One call of ``DeliveryEngine/send(_:)``.
final class DeliveryCall: DeliveryReceiver {
    private let request: DeliveryRequest
    private let waiter = Mutex<CheckedContinuation<DeliveryOutcome, Never>?>(nil)
    private let cancelled = Atomic(false)

    init(_ request: DeliveryRequest) {
        self.request = request
    }

    var order: DeliveryOrder { DeliveryOrder(request: request, tag: 0, receiver: self) }

    /// Read and set under the gate's lock.
    var isCancelled: Bool {
        get { cancelled.load(ordering: .relaxed) }
        set { cancelled.store(newValue, ordering: .relaxed) }
    }

    func begin(_ continuation: CheckedContinuation<DeliveryOutcome, Never>) {
        waiter.withLock { $0 = continuation }
    }

    func received(_ outcome: DeliveryOutcome, for tag: UInt64) {
        let waiter = waiter.withLock { waiter in
            defer { waiter = nil }
            return waiter
        }
        waiter?.resume(returning: outcome)
    }
}
