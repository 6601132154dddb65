import Foundation
import Synchronization
import WidgetModel

/// The reason why another process of the app gave no answer.
public struct ProcessUnreachable: Error, Sendable, Equatable, CustomStringConvertible {
    /// The path of the socket, and the system's reason.
    public let description: String

    /// - Parameter code: The `errno`; 0 where the other process closed the connection.
    init(_ path: String, _ code: Int32) {
        let reason = code == 0 ? "the connection was closed" : String(cString: strerror(code))
        description = "no process answers at \(path): \(reason)"
    }
}

/// The reason why another process of the app refused a request. It is meant for display: it may
/// contain what a person chose.
public struct ProcessRefusal: LocalizedError, Sendable, Equatable, CustomStringConvertible {
    /// The other process's text.
    public let description: String
    /// The other process's text.
    public var errorDescription: String? { description }
}

#if canImport(Darwin)
    private let (stream, noSignal) = (SOCK_STREAM, Int32(0))
#else
    private let (stream, noSignal) = (Int32(SOCK_STREAM.rawValue), Int32(MSG_NOSIGNAL))
#endif

/// Requests between the processes of one app over a Unix domain socket. A connection carries one
/// request and its answer, each a line of JSON. A socket has mode 0600, so only processes of its
/// owner connect.
///
/// Each blocking call has a thread of its own: Swift concurrency has only a few.
enum LocalSocket {
    /// The longest request, bytes. Calls and configurations are far smaller.
    static let requestBytesMax = 256 * 1024
    /// The longest answer, bytes: a whole timeline.
    static let answerBytesMax = ClientArchive.timelineBytesMax + requestBytesMax
    /// The time for an answer. The other process may perform an intent first.
    static let answerTimeMax = Duration.seconds(60)
    /// The time in which a peer sends its request, or takes its answer.
    static let lineTimeMax = Duration.seconds(10)

    /// Sends a request and returns the answer. Throws ``ProcessUnreachable``; or ``ProcessRefusal``
    /// with the other process's reason.
    static func request(_ request: JSONObject, at path: String) async throws -> JSONValue {
        let line = JSONValue.object(request).serialized
        guard line.count <= requestBytesMax else { throw ProcessUnreachable(path, EMSGSIZE) }
        let peer = try opened(path)
        defer { _ = close(peer) }
        let answer: [UInt8] = try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                Thread {
                    continuation.resume(with: Result { try exchange(line, with: peer, at: path) })
                }.start()
            }
        } onCancel: {
            // Ends what the thread waits for.
            _ = shutdown(peer, Int32(SHUT_RDWR))
        }
        let object = (try? JSONValue(parsing: answer))?.objectValue
        if let reason = object?["error"]?.stringValue { throw ProcessRefusal(description: reason) }
        guard let value = object?["answer"] else { throw ProcessUnreachable(path, EBADMSG) }
        return value
    }

    private static func exchange(
        _ line: [UInt8], with peer: Int32, at path: String
    ) throws -> [UInt8] {
        prepare(peer)
        // The other process gives up first, and says so.
        guard withAddress(path, { connect(peer, $0, $1) }) == 0, transmit(line, to: peer),
            let answer = receiveLine(
                from: peer, bytesMax: answerBytesMax, within: answerTimeMax + lineTimeMax)
        else { throw ProcessUnreachable(path, errno) }
        return answer
    }

    /// Returns a listening socket at a path that no other process listens at.
    fileprivate static func listener(at path: String) throws -> Int32 {
        let listener = try opened(path)
        // A process that was killed leaves its socket behind.
        _ = unlink(path)
        guard withAddress(path, { bind(listener, $0, $1) }) == 0, chmod(path, 0o600) == 0,
            listen(listener, 16) == 0
        else {
            defer { _ = close(listener) }
            throw ProcessUnreachable(path, errno)
        }
        return listener
    }

    private static func opened(_ path: String) throws -> Int32 {
        let descriptor = socket(AF_UNIX, stream, 0)
        guard descriptor >= 0 else { throw ProcessUnreachable(path, errno) }
        // Child processes do not get it.
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        return descriptor
    }

    /// Keeps a connection from child processes, and bounds each wait for a peer that takes nothing.
    fileprivate static func prepare(_ descriptor: Int32) {
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        #if canImport(Darwin)
            var isOn: Int32 = 1
            _ = setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &isOn, 4)
        #endif
        bound(SO_SNDTIMEO, of: descriptor, to: lineTimeMax)
    }

    private static func bound(_ option: Int32, of descriptor: Int32, to limit: Duration) {
        var time = timeval(tv_sec: Int(clamping: limit.components.seconds), tv_usec: 0)
        _ = setsockopt(
            descriptor, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size))
    }

    /// Sends a line; returns whether the peer took all of it in time.
    fileprivate static func transmit(_ line: [UInt8], to descriptor: Int32) -> Bool {
        let end = ContinuousClock.now + lineTimeMax
        var rest = (line + [UInt8(ascii: "\n")])[...]
        while !rest.isEmpty {
            // Sound: the buffer is read only during the call.
            let count = rest.withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, noSignal)
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0, ContinuousClock.now < end else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Returns a line without its end; `nil` when the peer ends, takes too long or sends too much.
    fileprivate static func receiveLine(
        from descriptor: Int32, bytesMax: Int, within limit: Duration = lineTimeMax
    ) -> [UInt8]? {
        bound(SO_RCVTIMEO, of: descriptor, to: limit)
        let end = ContinuousClock.now + limit
        var line: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 * 1024)
        // A peer that sends a byte now and then is not waited for either.
        while line.count <= bytesMax, ContinuousClock.now < end {
            errno = 0
            let count = recv(descriptor, &chunk, chunk.count, 0)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return nil }
            let lineEnd = chunk[..<count].firstIndex(of: UInt8(ascii: "\n"))
            line += chunk[..<(lineEnd ?? count)]
            if lineEnd != nil, line.count <= bytesMax { return line }
        }
        errno = line.count > bytesMax ? EMSGSIZE : ETIMEDOUT
        return nil
    }

    private static func withAddress(
        _ path: String, _ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_un()
        guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else {
            errno = ENAMETOOLONG
            return -1
        }
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        // Sound: the calls take a `sockaddr_un`, and the pointer does not leave the closure.
        return withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                call($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}

/// Answers the requests that come to one socket, until it is ended.
final class LocalServer: Sendable {
    /// The maximum number of requests that are being answered; more are refused.
    static let requestsMax = 32

    typealias Answer = @Sendable (JSONObject) async throws -> JSONValue

    private let path: String
    private let listener: Int32
    private let answer: Answer
    private let requests = Mutex(0)
    private let isEnded = Mutex(false)

    /// Listens at a path; the caller has made sure that no other process does. Throws
    /// ``ProcessUnreachable``.
    init(path: String, answer: @escaping Answer) throws {
        self.path = path
        self.answer = answer
        listener = try LocalSocket.listener(at: path)
        Thread { [self] in acceptAll() }.start()
    }

    /// Stops listening. Requests that came before are still answered.
    func end() {
        isEnded.withLock { isEnded in
            guard !isEnded else { return }
            isEnded = true
            _ = unlink(path)
            // Wakes the thread, which closes the descriptor after this.
            _ = shutdown(listener, Int32(SHUT_RDWR))
        }
    }

    private func acceptAll() {
        while true {
            let peer = accept(listener, nil, nil)
            guard !isEnded.withLock({ $0 }) else {
                if peer >= 0 { _ = close(peer) }
                break
            }
            guard peer >= 0 else {
                // The process may be out of descriptors for a while.
                Thread.sleep(forTimeInterval: 0.05)
                continue
            }
            LocalSocket.prepare(peer)
            let count = requests.withLock { requests in
                requests += 1
                return requests
            }
            if count > Self.requestsMax {
                finish(peer)
            } else {
                Thread { [self] in serve(peer) }.start()
            }
        }
        _ = close(listener)
    }

    private func serve(_ peer: Int32) {
        let line = LocalSocket.receiveLine(from: peer, bytesMax: LocalSocket.requestBytesMax)
        guard let request = line.flatMap({ try? JSONValue(parsing: $0) })?.objectValue else {
            return finish(peer)
        }
        Task {
            let reply = await reply(to: request)
            Thread { [self] in
                _ = LocalSocket.transmit(reply, to: peer)
                finish(peer)
            }.start()
        }
    }

    private func finish(_ peer: Int32) {
        _ = close(peer)
        requests.withLock { $0 -= 1 }
    }

    private func reply(to request: JSONObject) async -> [UInt8] {
        do {
            // An intent or a provider that never returns must not use up the connections.
            let value = try await Deadline.run(LocalSocket.answerTimeMax) { [answer] in
                try await answer(request)
            }
            let bytes = JSONValue.object(["answer": value]).serialized
            if bytes.count <= LocalSocket.answerBytesMax { return bytes }
            throw ProcessRefusal(description: "the answer is too long")
        } catch {
            // The peer is a process of the same person, so the text may contain what they chose.
            let text = (error as? any LocalizedError)?.errorDescription ?? "\(error)"
            return JSONValue.object(["error": .string(text)]).serialized
        }
    }
}
