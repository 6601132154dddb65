import CCurl

/// The transfers of one client, on its thread.
struct TransferDriver: CurlDriver {
    /// A request of another thread.
    enum Command: Sendable {
        case start(CurlCall)
        case resume(CurlCall)
        case cancel(CurlCall)
    }

    private let configuration: CurlClient.Configuration
    private let limiter: ConcurrencyLimiter
    private let sockets: ClientSockets
    private var transfers: [ObjectIdentifier: Transfer] = [:]
    /// Unused handles, without options. They keep the TLS sessions of their earlier requests.
    private var idle: [CurlEasy] = []
    /// The time before which no transfer expires; `nil` when none can expire.
    private var nextExpiry: ContinuousClock.Instant?

    init(_ configuration: CurlClient.Configuration, _ limiter: ConcurrencyLimiter) {
        self.configuration = configuration
        self.limiter = limiter
        sockets = ClientSockets(configuration, limiter)
    }

    mutating func obey(_ command: Command, _ multi: CurlMulti) {
        switch command {
        case .start(let call):
            if !start(call, multi) { leave(multi) }
        case .resume(let call):
            guard let transfer = transfers[ObjectIdentifier(call)] else { return }
            transfer.resume()
            note(transfer.expiry?.at)
        case .cancel(let call):
            guard let transfer = transfers[ObjectIdentifier(call)] else { return }
            finish(transfer, head: nil, failure: .isCancelled, on: multi)
        }
    }

    mutating func ended(_ easy: CurlEasy, _ code: CURLcode, _ multi: CurlMulti) {
        guard let context = easy.context else { return }
        // Sound: the context is the transfer, which `transfers` keeps as long as its handle is in
        // `multi`.
        let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
        finish(transfer, head: transfer.head, failure: transfer.failure(code), on: multi)
    }

    /// Gives up expired transfers, and returns the time until the next one expires.
    mutating func turned(_ multi: CurlMulti) -> Int32 {
        let now = ContinuousClock.now
        if let due = nextExpiry, due <= now {
            nextExpiry = nil
            for transfer in Array(transfers.values) {
                guard let expiry = transfer.expiry else { continue }
                if expiry.at <= now {
                    finish(transfer, head: nil, failure: expiry.reason, on: multi)
                } else {
                    note(expiry.at)
                }
            }
        }
        return nextExpiry.map { Int32(clamping: ($0 - now).curlMilliseconds + 1) } ?? 60_000
    }

    mutating func stop(_ multi: CurlMulti) {
        for transfer in Array(transfers.values) {
            finish(transfer, head: nil, failure: .isClosed, on: multi)
        }
        for easy in idle { easy.free() }
        limiter.countHandles(-idle.count)
        idle.removeAll()
    }

    mutating func stopped() {
        limiter.ended()
    }

    private mutating func note(_ expiry: ContinuousClock.Instant?) {
        guard let expiry else { return }
        nextExpiry = min(nextExpiry ?? expiry, expiry)
    }

    /// - Returns: Whether the request is in flight; if not, its receiver has been called.
    private mutating func start(_ call: CurlCall, _ multi: CurlMulti) -> Bool {
        var failure = CurlError(.noMemory, "libcurl has no memory")
        if let easy = idle.popLast() ?? newHandle() {
            let transfer = Transfer(
                call, easy: easy, configuration: configuration, sockets: sockets)
            if let refusal = transfer.configure() {
                failure = refusal
            } else if multi.add(easy) {
                transfers[ObjectIdentifier(call)] = transfer
                note(transfer.expiry?.at)
                return true
            }
            release(transfer)
        }
        call.receiver.ended(nil, failure)
        return false
    }

    private func newHandle() -> CurlEasy? {
        guard let easy = CurlEasy() else { return nil }
        limiter.countHandles(1)
        return easy
    }

    /// Resets or frees a transfer's handle.
    private mutating func release(_ transfer: Transfer) {
        // Sound: the transfer's memory is freed after this.
        withExtendedLifetime(transfer) {
            if configuration.keepsHandles {
                transfer.easy.reset()
                idle.append(transfer.easy)
            } else {
                transfer.easy.free()
                limiter.countHandles(-1)
            }
        }
    }

    private mutating func finish(
        _ transfer: Transfer, head: CurlHead?, failure: CurlError?, on multi: CurlMulti
    ) {
        multi.remove(transfer.easy)
        transfers[ObjectIdentifier(transfer.call)] = nil
        release(transfer)
        leave(multi)
        // Called last, so that a caller that waits for the end finds the request gone.
        transfer.call.receiver.ended(head, failure)
    }

    /// Starts a waiting request in the place of one that has ended.
    private mutating func leave(_ multi: CurlMulti) {
        while let next = limiter.leave() {
            if start(next, multi) { return }
        }
    }
}
