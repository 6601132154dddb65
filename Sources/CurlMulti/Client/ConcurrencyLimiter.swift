import Synchronization

/// Limits the number of a client's requests in flight, and queues those that wait for room.
final class ConcurrencyLimiter: Sendable {
    private struct State {
        var stats = CurlClient.Stats()
        var waiting: [CurlCall] = []
        var isClosed = false
        var hasEnded = false
        var drainers: [CheckedContinuation<Void, Never>] = []
        var enders: [CheckedContinuation<Void, Never>] = []

        var isIdle: Bool { stats.inFlight == 0 && waiting.isEmpty }

        mutating func takeDrainers() -> [CheckedContinuation<Void, Never>] {
            guard isIdle else { return [] }
            defer { drainers.removeAll() }
            return drainers
        }
    }

    private let state = Mutex(State())
    private let requestsMax: Int
    private let waitingMax: Int

    init(_ configuration: CurlClient.Configuration) {
        requestsMax = configuration.requestsMax
        waitingMax = configuration.waitingMax
    }

    var stats: CurlClient.Stats {
        state.withLock { state in
            var stats = state.stats
            stats.waiting = state.waiting.count
            return stats
        }
    }

    // MARK: Any thread

    /// Starts a call, or queues it; ends it at once if the client is closed or too many calls wait.
    func admit(_ call: CurlCall, to loop: CurlLoop<TransferDriver>) {
        let refusal = state.withLock { state -> CurlError? in
            guard !state.isClosed else { return .isClosed }
            if state.stats.inFlight < requestsMax {
                guard loop.submit(.start(call)) else { return .isClosed }
                state.stats.inFlight += 1
                return nil
            }
            guard state.waiting.count < waitingMax else {
                return CurlError(.busy, "the queue of \(waitingMax) requests is full")
            }
            state.waiting.append(call)
            return nil
        }
        if let refusal { call.receiver.ended(nil, refusal) }
    }

    /// Ends a call, whether it waits or is in flight.
    func cancel(_ call: CurlCall, in loop: CurlLoop<TransferDriver>) {
        let didWait = state.withLock { state in
            guard let index = state.waiting.firstIndex(where: { $0 === call }) else { return false }
            state.waiting.remove(at: index)
            return true
        }
        if didWait {
            call.receiver.ended(nil, .isCancelled)
        } else {
            _ = loop.submit(.cancel(call))
        }
    }

    /// Rejects new calls, and ends those that wait.
    func close() {
        let waiting = state.withLock { state in
            state.isClosed = true
            defer { state.waiting.removeAll() }
            return state.waiting
        }
        for call in waiting { call.receiver.ended(nil, .isClosed) }
    }

    /// Rejects new calls, and returns once no call waits or is in flight.
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

    /// Returns once the client's thread has ended.
    func end() async {
        await withCheckedContinuation { continuation in
            let hasEnded = state.withLock { state in
                if !state.hasEnded { state.enders.append(continuation) }
                return state.hasEnded
            }
            if hasEnded { continuation.resume() }
        }
    }

    // MARK: The client's thread

    /// Records that a request has ended. Returns the queued call to start in its place, if any.
    func leave() -> CurlCall? {
        typealias Left = (next: CurlCall?, drainers: [CheckedContinuation<Void, Never>])
        let (next, drainers) = state.withLock { state -> Left in
            if !state.waiting.isEmpty { return (state.waiting.removeFirst(), []) }
            state.stats.inFlight -= 1
            return (nil, state.takeDrainers())
        }
        for drainer in drainers { drainer.resume() }
        return next
    }

    /// Records that handles were made or freed.
    func countHandles(_ change: Int) {
        state.withLock { $0.stats.handles += change }
    }

    /// Records the number of open sockets.
    func noteConnections(_ count: Int) {
        state.withLock { $0.stats.connections = count }
    }

    /// Records that the thread has ended.
    func ended() {
        let enders = state.withLock { state in
            state.hasEnded = true
            state.stats.connections = 0
            defer { state.enders.removeAll() }
            return state.enders
        }
        for ender in enders { ender.resume() }
    }
}
