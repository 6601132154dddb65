import Synchronization

/// The unread part of a response: filled by the client's thread, emptied by a reader's task.
final class ResponseBuffer: TransferReceiver {
    /// The effect of a full buffer, with its size in bytes.
    enum Limit {
        /// The request ends; the body is read only after that.
        case ends(at: Int)
        /// The peer has to wait until the reader has read the bytes.
        case pauses(at: Int)
    }

    typealias Waiter = CheckedContinuation<Void, Never>

    struct State {
        var head: CurlHead?
        var body: [UInt8] = []
        var isPaused = false
        var hasEnded = false
        var failure: CurlError?
        /// The number of changes that a reader may be waiting for.
        private(set) var version = 0
        var waiter: Waiter?

        /// Records a change; returns the waiter to resume after the lock is released.
        mutating func change() -> Waiter? {
            version += 1
            defer { waiter = nil }
            return waiter
        }
    }

    let state = Mutex(State())
    private let limit: Limit

    init(_ limit: Limit) {
        self.limit = limit
    }

    /// Returns once the state's version is no longer `version`.
    func change(since version: Int) async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.version == version { state.waiter = continuation }
                return state.version != version
            }
            if isOver { continuation.resume() }
        }
    }

    // MARK: The client's thread

    func received(_ head: CurlHead) {
        update { $0.head = head }
    }

    func received(_ piece: UnsafeRawBufferPointer) -> Int? {
        switch limit {
        case .ends(let bytesMax):
            return state.withLock { state in
                let count = min(piece.count, max(0, bytesMax - state.body.count))
                state.body.append(contentsOf: piece.prefix(count))
                return count
            }
        case .pauses(let bytesMax):
            let isFull = state.withLock { state in
                state.isPaused = state.body.count >= bytesMax
                return state.isPaused
            }
            guard !isFull else { return nil }
            update { $0.body.append(contentsOf: piece) }
            return piece.count
        }
    }

    func ended(_ head: CurlHead?, _ failure: CurlError?) {
        update { state in
            state.head = state.head ?? head
            state.failure = failure
            state.hasEnded = true
        }
    }

    private func update(_ body: (inout State) -> Void) {
        let waiter = state.withLock { state in
            body(&state)
            return state.change()
        }
        waiter?.resume()
    }
}
