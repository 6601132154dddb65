import CCurl
import CurlMulti
import Synchronization
import TimelineClient

/// The exchanges of one connection, on the thread of its loop.
struct TransferDriver: CurlDriver {
    /// What the thread is asked to do.
    enum Command: Sendable {
        case start(CurlTransfer)
        case resume(CurlTransfer)
        case cancel(CurlTransfer)
    }

    /// Counts handles for other threads.
    final class Count: Sendable {
        private let number = Atomic(0)

        /// Easy handles that are not yet cleaned up.
        var openHandles: Int { number.load(ordering: .relaxed) }

        fileprivate func add(_ change: Int) {
            number.add(change, ordering: .relaxed)
        }
    }

    private let count: Count
    private var handles: [ObjectIdentifier: CurlHandle] = [:]

    init(_ count: Count) {
        self.count = count
    }

    mutating func obey(_ command: Command, _ multi: CurlMulti) {
        switch command {
        case .start(let transfer):
            guard let handle = CurlHandle(transfer) else {
                transfer.finish(.failure(ConnectionError(.broken, "libcurl has no memory")))
                return
            }
            count.add(1)
            handles[ObjectIdentifier(transfer)] = handle
            if !multi.add(handle.easy) {
                let error = ConnectionError(.broken, "libcurl did not take the request")
                remove(ObjectIdentifier(transfer), multi, .failure(error))
            }
        case .resume(let transfer):
            guard let handle = handles[ObjectIdentifier(transfer)] else { return }
            curl_easy_pause(handle.easy.pointer, CURLPAUSE_CONT)
        case .cancel(let transfer):
            let error = ConnectionError(.cancelled, "the exchange was cancelled")
            remove(ObjectIdentifier(transfer), multi, .failure(error))
        }
    }

    mutating func ended(_ easy: CurlEasy, _ code: CURLcode, _ multi: CurlMulti) {
        guard let context = easy.context else { return }
        // Sound: the context is the transfer that `handles` keeps alive until `remove`.
        let transfer = Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
        let outcome: Result<Void, ConnectionError> =
            code == CURLE_OK ? .success(()) : .failure(ConnectionError(code))
        remove(ObjectIdentifier(transfer), multi, outcome)
    }

    /// Gives up the streams that were silent for too long, and sleeps until the next would be.
    mutating func turned(_ multi: CurlMulti) -> Int32 {
        let now = ContinuousClock.now
        var next = now + .seconds(60)
        for (key, handle) in handles {
            guard let silentAt = handle.transfer.silentAt else { continue }
            next = min(next, silentAt)
            guard silentAt <= now else { continue }
            let error = ConnectionError(.silent, "the stream carried nothing for too long")
            remove(key, multi, .failure(error))
        }
        return Int32(clamping: (next - now).curlMilliseconds) + 1
    }

    mutating func stop(_ multi: CurlMulti) {
        let cancelled = ConnectionError(.cancelled, "the connection is closed")
        for key in Array(handles.keys) { remove(key, multi, .failure(cancelled)) }
    }

    private mutating func remove(
        _ key: ObjectIdentifier, _ multi: CurlMulti, _ outcome: Result<Void, ConnectionError>
    ) {
        guard let handle = handles.removeValue(forKey: key) else { return }
        multi.remove(handle.easy)
        handle.free()
        count.add(-1)
        // Last, so that whoever waits for the end finds the handle gone.
        handle.transfer.finish(outcome)
    }
}
