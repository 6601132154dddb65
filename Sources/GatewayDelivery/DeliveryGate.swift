import CurlMulti
import Synchronization

/// What the engine's thread is asked to do, once.
struct DeliveryOrder: Sendable {
    let request: DeliveryRequest
    let tag: UInt64
    let receiver: any DeliveryReceiver
}

/// Lets no more requests into an engine than may be under way, and knows who waits.
final class DeliveryGate: Sendable {
    private struct State {
        var figures = DeliveryFigures()
        var waiting: [DeliveryCall] = []
        var isClosed = false
        var hasEnded = false
        var drainers: [CheckedContinuation<Void, Never>] = []
        var enders: [CheckedContinuation<Void, Never>] = []

        var isIdle: Bool { figures.underWay == 0 && waiting.isEmpty }

        mutating func takeDrainers() -> [CheckedContinuation<Void, Never>] {
            guard isIdle else { return [] }
            defer { drainers.removeAll() }
            return drainers
        }
    }

    private let state = Mutex(State())
    private let requestsMax: Int
    private let waitingMax: Int

    init(_ configuration: DeliveryEngine.Configuration) {
        requestsMax = configuration.requestsMax
        waitingMax = configuration.waitingMax
    }

    var figures: DeliveryFigures {
        state.withLock { state in
            var figures = state.figures
            figures.waiting = state.waiting.count
            return figures
        }
    }

    // MARK: Any thread

    /// Whether there was room.
    func admit(_ order: DeliveryOrder, to loop: CurlLoop<DeliveryDriver>) -> Bool {
        state.withLock { state in
            guard !state.isClosed, state.figures.underWay < requestsMax,
                loop.submit(.start(order))
            else { return false }
            state.figures.underWay += 1
            return true
        }
    }

    /// Lets a call in, or has it wait.
    func admit(_ call: DeliveryCall, to loop: CurlLoop<DeliveryDriver>) {
        let refusal = state.withLock { state -> DeliveryError? in
            guard !call.isCancelled else { return .wasCancelled }
            guard !state.isClosed else { return .isClosed }
            if state.figures.underWay < requestsMax {
                guard loop.submit(.start(call.order)) else { return .isClosed }
                state.figures.underWay += 1
                return nil
            }
            guard state.waiting.count < waitingMax else {
                return DeliveryError(.busy, "\(waitingMax) callers wait already")
            }
            state.waiting.append(call)
            return nil
        }
        if let refusal { call.received(.failure(refusal), for: 0) }
    }

    /// Ends a call, wherever it is.
    func cancel(_ call: DeliveryCall, in loop: CurlLoop<DeliveryDriver>) {
        let didWait = state.withLock { state in
            call.isCancelled = true
            guard let index = state.waiting.firstIndex(where: { $0 === call }) else {
                // Under the lock, so that it comes after the order to start, if there is one.
                _ = loop.submit(.cancel(call))
                return false
            }
            state.waiting.remove(at: index)
            return true
        }
        if didWait { call.received(.failure(.wasCancelled), for: 0) }
    }

    /// Lets nobody in any more, and those go who wait.
    func close() {
        let waiting = state.withLock { state in
            state.isClosed = true
            defer { state.waiting.removeAll() }
            return state.waiting
        }
        for call in waiting { call.received(.failure(.isClosed), for: 0) }
    }

    /// Lets nobody in any more, and returns when nobody is in or waits.
    func drain() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                state.isClosed = true
                if !state.isIdle { state.drainers.append(continuation) }
                return state.isIdle
            }
            if isIdle { continuation.resume() }
        }
    }

    /// Returns when the engine's thread is at its end.
    func end() async {
        await withCheckedContinuation { continuation in
            let hasEnded = state.withLock { state in
                if !state.hasEnded { state.enders.append(continuation) }
                return state.hasEnded
            }
            if hasEnded { continuation.resume() }
        }
    }

    // MARK: The engine's thread

    /// A request has ended.
    ///
    /// - Returns: The call that is let in instead of it.
    func leave() -> DeliveryCall? {
        typealias Left = (next: DeliveryCall?, drainers: [CheckedContinuation<Void, Never>])
        let (next, drainers) = state.withLock { state -> Left in
            if !state.waiting.isEmpty { return (state.waiting.removeFirst(), []) }
            state.figures.underWay -= 1
            return (nil, state.takeDrainers())
        }
        for drainer in drainers { drainer.resume() }
        return next
    }

    /// A handle was made, or freed.
    func countHandles(_ change: Int) {
        state.withLock { $0.figures.handles += change }
    }

    /// There are so many sockets.
    func noteConnections(_ count: Int) {
        state.withLock { $0.figures.connections = count }
    }

    /// The thread is at its end.
    func ended() {
        let enders = state.withLock { state in
            state.hasEnded = true
            state.figures.connections = 0
            defer { state.enders.removeAll() }
            return state.enders
        }
        for ender in enders { ender.resume() }
    }
}

extension DeliveryError {
    static let wasCancelled = DeliveryError(.cancelled, "the request was cancelled")
    static let isClosed = DeliveryError(.closed, "the engine is closed")
}
