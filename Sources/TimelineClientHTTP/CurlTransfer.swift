import CurlMulti
import Synchronization
import TimelineClient

/// One exchange: filled by the loop's thread, read by one task.
final class CurlTransfer: Sendable {
    /// Fields of an answer beyond these are dropped: a peer must not choose how much is kept.
    static let headerFieldsMax = 100

    /// What to send, and how long to wait.
    struct Order: Sendable {
        let url: String
        let method: String
        let headers: [(name: String, value: String)]
        let body: [UInt8]?
        let caFile: String?
        let connectDeadline: Duration
        let totalDeadline: Duration?
        let silenceMax: Duration?
        /// Whether the exchange has a connection of its own.
        let isIsolated: Bool
        /// Whether it is spoken without TLS.
        let isPlain: Bool
        let bufferBytesMax: Int
    }

    private struct State {
        var status = 0
        var fields: [(name: String, value: String)] = []
        var head: GatewayResponseHead?
        var pieces: [UInt8] = []
        var isPaused = false
        var lastHeard = ContinuousClock.now
        var end: Result<Void, ConnectionError>?
        /// Counts what a reader may be waiting for.
        var version = 0
        var waiter: CheckedContinuation<Void, Never>?

        /// Notes that something is new; the waiter is to be resumed after the lock is released.
        mutating func change() -> CheckedContinuation<Void, Never>? {
            version += 1
            defer { waiter = nil }
            return waiter
        }
    }

    let order: Order
    private let loop: CurlLoop<TransferDriver>
    private let state = Mutex(State())

    init(order: Order, loop: CurlLoop<TransferDriver>) {
        self.order = order
        self.loop = loop
    }

    /// Ends an exchange when its reader is gone.
    final class Lease: Sendable {
        let transfer: CurlTransfer

        init(_ transfer: CurlTransfer) {
            self.transfer = transfer
        }

        deinit {
            transfer.cancel()
        }
    }

    // MARK: The reader

    /// The head of the answer, once it is here.
    func head() async throws(ConnectionError) -> GatewayResponseHead {
        while true {
            let (head, end, version) = state.withLock { ($0.head, $0.end, $0.version) }
            if let head { return head }
            switch end {
            case .failure(let error): throw error
            case .success: throw ConnectionError(.broken, "the answer has no head")
            case nil: await waitForChange(since: version)
            }
        }
    }

    /// What came since the last call, once there is something; `nil` at the end.
    func next() async throws(ConnectionError) -> [UInt8]? {
        while true {
            let (piece, end, version, wasPaused) = state.withLock { state in
                let piece = state.pieces
                let wasPaused = state.isPaused
                state.pieces = []
                state.isPaused = false
                if wasPaused { state.lastHeard = .now }
                return (piece, state.end, state.version, wasPaused)
            }
            if wasPaused { _ = loop.submit(.resume(self)) }
            if case .failure(let error) = end, error.code == .cancelled { throw error }
            if !piece.isEmpty { return piece }
            switch end {
            case .failure(let error): throw error
            case .success: return nil
            case nil: await waitForChange(since: version)
            }
        }
    }

    private func waitForChange(since version: Int) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if state.version == version { state.waiter = continuation }
                    return state.version != version
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            cancel()
        }
    }

    /// Ends the exchange now, whatever is still to come.
    func cancel() {
        finish(.failure(ConnectionError(.cancelled, "the exchange was cancelled")))
        _ = loop.submit(.cancel(self))
    }

    // MARK: The loop's thread

    /// Notes the outcome; the first one counts.
    func finish(_ outcome: Result<Void, ConnectionError>) {
        let waiter = state.withLock { state in
            guard state.end == nil else { return nil as CheckedContinuation<Void, Never>? }
            state.end = outcome
            return state.change()
        }
        waiter?.resume()
    }

    /// Takes one line of the head. Heads of interim answers and trailers are left out.
    func takeHeader(_ line: [UInt8]) {
        let text = String(decoding: line, as: UTF8.self)
        let waiter = state.withLock { state in
            state.lastHeard = .now
            guard state.head == nil else { return nil as CheckedContinuation<Void, Never>? }
            let trimmed = text.trimmingLineEnd
            if trimmed.hasPrefix("HTTP/") {
                let parts = trimmed.split(separator: " ", maxSplits: 2)
                state.status = parts.count > 1 ? Int(parts[1]) ?? 0 : 0
                state.fields = []
            } else if trimmed.isEmpty {
                guard state.status >= 200 else { return nil }
                state.head = GatewayResponseHead(status: state.status, headers: state.fields)
                return state.change()
            } else if let colon = trimmed.firstIndex(of: ":"),
                state.fields.count < Self.headerFieldsMax
            {
                let value = trimmed[trimmed.index(after: colon)...].drop { $0 == " " }
                state.fields.append((name: String(trimmed[..<colon]), value: String(value)))
            }
            return nil
        }
        waiter?.resume()
    }

    /// What to answer libcurl that offers a piece of the body.
    enum Taking {
        case taken
        case pause
        case abort
    }

    /// Takes a piece of the body, unless the reader is behind or gone.
    func takeBody(_ piece: UnsafeRawBufferPointer) -> Taking {
        let (taking, waiter) = state.withLock { state in
            state.lastHeard = .now
            let nobody: CheckedContinuation<Void, Never>? = nil
            guard state.end == nil else { return (Taking.abort, nobody) }
            guard state.pieces.count < order.bufferBytesMax else {
                state.isPaused = true
                return (Taking.pause, nobody)
            }
            state.pieces.append(contentsOf: piece)
            return (Taking.taken, state.change())
        }
        waiter?.resume()
        return taking
    }

    /// When the exchange is given up unless something is heard; `nil` when nothing bounds it, or
    /// when it is the reader who does not take what there is.
    var silentAt: ContinuousClock.Instant? {
        guard let silenceMax = order.silenceMax else { return nil }
        return state.withLock { $0.isPaused ? nil : $0.lastHeard + silenceMax }
    }
}

extension String {
    fileprivate var trimmingLineEnd: Substring {
        var text = self[...]
        while let last = text.last, last.isNewline { text.removeLast() }
        return text
    }
}
