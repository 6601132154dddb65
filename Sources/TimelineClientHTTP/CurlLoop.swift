import CCurl
import Foundation
import Synchronization
import TimelineClient

/// The one thread that calls libcurl's multi interface, and the queue of what it is to do.
final class CurlLoop: Sendable {
    /// What the thread is asked to do.
    enum Command: Sendable {
        case start(CurlTransfer)
        case resume(CurlTransfer)
        case cancel(CurlTransfer)
    }

    /// libcurl's multi handle.
    private struct Multi: @unchecked Sendable {
        // Sound: other threads only call curl_multi_wakeup, which is meant for that, and only
        // under the lock that also guards the handle's end; all else is the loop's thread.
        let pointer: UnsafeMutableRawPointer
    }

    private struct Shared {
        var commands: [Command] = []
        var multi: Multi?
        var isStopped = false
        var openHandles = 0
    }

    private let shared: Mutex<Shared>

    /// Once per process, before any other call.
    private static let isInitialised = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    /// A loop whose thread runs until ``stop()``.
    init() throws(ConnectionError) {
        guard Self.isInitialised, let pointer = curl_multi_init() else {
            throw ConnectionError(.broken, "libcurl could not be initialised")
        }
        let multi = Multi(pointer: pointer)
        shared = Mutex(Shared(multi: multi))
        Thread.detachNewThread { [self] in run(multi.pointer) }
    }

    /// - Returns: Whether the thread will do it; not after ``stop()``.
    func submit(_ command: Command) -> Bool {
        shared.withLock { shared in
            guard !shared.isStopped, let multi = shared.multi else { return false }
            shared.commands.append(command)
            curl_multi_wakeup(multi.pointer)
            return true
        }
    }

    /// Ends every exchange and the thread, soon.
    func stop() {
        shared.withLock { shared in
            shared.isStopped = true
            if let multi = shared.multi { curl_multi_wakeup(multi.pointer) }
        }
    }

    /// Easy handles that are not yet cleaned up.
    var openHandles: Int { shared.withLock { $0.openHandles } }

    // MARK: The thread

    private func run(_ multi: UnsafeMutableRawPointer) {
        var handles: [ObjectIdentifier: CurlHandle] = [:]
        while true {
            let (commands, isStopped) = shared.withLock { shared in
                defer { shared.commands.removeAll() }
                return (shared.commands, shared.isStopped)
            }
            for command in commands { obey(command, multi, &handles) }
            if isStopped { break }
            var running: Int32 = 0
            curl_multi_perform(multi, &running)
            reap(multi, &handles)
            giveUpSilent(multi, &handles)
            curl_multi_poll(multi, nil, 0, Self.patience(handles.values), nil)
        }
        let cancelled = ConnectionError(.cancelled, "the connection is closed")
        for key in Array(handles.keys) { remove(key, multi, &handles, .failure(cancelled)) }
        shared.withLock { $0.multi = nil }
        curl_multi_cleanup(multi)
    }

    private func obey(
        _ command: Command, _ multi: UnsafeMutableRawPointer,
        _ handles: inout [ObjectIdentifier: CurlHandle]
    ) {
        switch command {
        case .start(let transfer):
            guard let handle = CurlHandle(transfer) else {
                transfer.finish(.failure(ConnectionError(.broken, "libcurl has no memory")))
                return
            }
            shared.withLock { $0.openHandles += 1 }
            handles[ObjectIdentifier(transfer)] = handle
            if curl_multi_add_handle(multi, handle.easy) != CURLM_OK {
                let error = ConnectionError(.broken, "libcurl did not take the request")
                remove(ObjectIdentifier(transfer), multi, &handles, .failure(error))
            }
        case .resume(let transfer):
            guard let handle = handles[ObjectIdentifier(transfer)] else { return }
            curl_easy_pause(handle.easy, CURLPAUSE_CONT)
        case .cancel(let transfer):
            let error = ConnectionError(.cancelled, "the exchange was cancelled")
            remove(ObjectIdentifier(transfer), multi, &handles, .failure(error))
        }
    }

    /// Takes out what has ended.
    private func reap(
        _ multi: UnsafeMutableRawPointer, _ handles: inout [ObjectIdentifier: CurlHandle]
    ) {
        var left: Int32 = 0
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle,
                let context = client_curl_get_context(easy)
            else { continue }
            let code = message.pointee.data.result
            // Sound: the context is the transfer that `handles` keeps alive until `remove`.
            let transfer = Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
            let outcome: Result<Void, ConnectionError> =
                code == CURLE_OK ? .success(()) : .failure(ConnectionError(code))
            remove(ObjectIdentifier(transfer), multi, &handles, outcome)
        }
    }

    private func giveUpSilent(
        _ multi: UnsafeMutableRawPointer, _ handles: inout [ObjectIdentifier: CurlHandle]
    ) {
        let now = ContinuousClock.now
        for (key, handle) in handles {
            guard let silentAt = handle.transfer.silentAt, silentAt <= now else { continue }
            let error = ConnectionError(.silent, "the stream carried nothing for too long")
            remove(key, multi, &handles, .failure(error))
        }
    }

    private func remove(
        _ key: ObjectIdentifier, _ multi: UnsafeMutableRawPointer,
        _ handles: inout [ObjectIdentifier: CurlHandle], _ outcome: Result<Void, ConnectionError>
    ) {
        guard let handle = handles.removeValue(forKey: key) else { return }
        curl_multi_remove_handle(multi, handle.easy)
        handle.free()
        shared.withLock { $0.openHandles -= 1 }
        // Last, so that whoever waits for the end finds the handle gone.
        handle.transfer.finish(outcome)
    }

    /// How long the thread may sleep, in milliseconds; libcurl shortens it by its own deadlines.
    private static func patience(_ handles: some Sequence<CurlHandle>) -> Int32 {
        let limit = Duration.seconds(60)
        let now = ContinuousClock.now
        let next = handles.compactMap(\.transfer.silentAt).min().map { $0 - now } ?? limit
        let (seconds, attoseconds) = min(limit, max(.zero, next)).components
        return Int32(seconds) * 1000 + Int32(attoseconds / 1_000_000_000_000_000) + 1
    }
}
