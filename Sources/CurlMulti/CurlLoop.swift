import CCurl
import Foundation
import Synchronization

/// The work of a ``CurlLoop``: made, called and released on the loop's thread only.
package protocol CurlDriver: SendableMetatype {
    /// A request of another thread to the driver.
    associatedtype Command: Sendable

    /// Carries out a command.
    mutating func obey(_ command: Command, _ multi: CurlMulti)

    /// Handles the end of a request, with `CURLE_OK` or another code. The request is still in
    /// `multi`.
    mutating func ended(_ easy: CurlEasy, _ code: CURLcode, _ multi: CurlMulti)

    /// Handles a socket, watched by ``CurlMulti/watch(_:toWrite:)``, that can be read or written.
    mutating func ready(_ socket: curl_socket_t, _ multi: CurlMulti)

    /// Called when nothing more can be done without waiting. Returns the longest time that the
    /// thread may sleep if nothing happens, in milliseconds.
    mutating func turned(_ multi: CurlMulti) -> Int32

    /// Ends all requests before the loop ends; no handle may be left in `multi`.
    mutating func stop(_ multi: CurlMulti)

    /// Called when the loop has ended and every connection is closed.
    mutating func stopped()
}

extension CurlDriver {
    /// Does nothing.
    package mutating func stopped() {}
    /// Does nothing: no socket is watched.
    package mutating func ready(_ socket: curl_socket_t, _ multi: CurlMulti) {}
}

/// The one thread that calls libcurl's multi interface, and the queue of its commands.
package final class CurlLoop<Driver: CurlDriver>: Sendable {
    private struct Shared {
        var commands: [Driver.Command] = []
        var isStopped = false
        /// The thread's alarm, as long as the thread runs.
        var alarm: CurlAlarm?
        /// Whether the thread sleeps or is about to.
        var isAsleep = false
    }

    /// The multi handle, which one thread makes and another one then uses alone.
    private struct Handover: @unchecked Sendable {
        // Sound: `init` hands it to the thread and does not touch it again.
        let multi: CurlMulti
    }

    private let shared: Mutex<Shared>

    /// A loop whose thread runs until ``stop()``. Returns `nil` when libcurl has no memory, when
    /// the process has no descriptors left, or when `configure` returns false.
    ///
    /// - Parameters:
    ///   - name: The thread's name.
    ///   - corkedMax: With at most this many sockets, everything that is written to one of them
    ///     before the thread sleeps is sent together.
    ///   - configure: Sets the limits that the requests share; returns false when libcurl does
    ///     not know one.
    ///   - driver: Makes the driver, on the thread.
    package init?(
        name: String, corkedMax: Int, configure: (CurlMulti) -> Bool = { _ in true },
        driver: @escaping @Sendable () -> Driver
    ) {
        guard let multi = CurlMulti(corkedMax: corkedMax) else { return nil }
        guard configure(multi), let alarm = CurlAlarm() else {
            multi.free()
            return nil
        }
        shared = Mutex(Shared(alarm: alarm))
        let handover = Handover(multi: multi)
        let thread = Thread { [self] in run(handover.multi, alarm, driver()) }
        thread.name = name
        thread.start()
    }

    /// Queues a command. Returns whether the thread will carry it out: false after ``stop()``.
    package func submit(_ command: Driver.Command) -> Bool {
        shared.withLock { shared in
            guard !shared.isStopped, let alarm = shared.alarm else { return false }
            shared.commands.append(command)
            if shared.isAsleep {
                shared.isAsleep = false
                alarm.ring()
            }
            return true
        }
    }

    /// Begins to end every request and the thread. Commands submitted before are still carried out.
    package func stop() {
        shared.withLock { shared in
            shared.isStopped = true
            shared.alarm?.ring()
        }
    }

    // MARK: The thread

    private func run(_ multi: CurlMulti, _ alarm: CurlAlarm, _ driver: Driver) {
        // OpenSSL may write to a socket that the peer has closed.
        var pipe = sigset_t()
        sigemptyset(&pipe)
        sigaddset(&pipe, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &pipe, nil)
        var driver = driver
        var commands: [Driver.Command] = []
        while true {
            let isStopped = shared.withLock { shared in
                shared.isAsleep = false
                swap(&commands, &shared.commands)
                return shared.isStopped
            }
            for command in commands { driver.obey(command, multi) }
            commands.removeAll(keepingCapacity: true)
            if isStopped { break }
            let patience = driver.turned(multi)
            let mayRest = shared.withLock { shared in
                shared.isAsleep = shared.commands.isEmpty && !shared.isStopped
                return shared.isAsleep
            }
            let isWoken = multi.turn(mayRest ? patience : 0, wake: alarm.descriptor) {
                driver.ready($0, multi)
            }
            if isWoken { alarm.silence() }
            while let (easy, code) = multi.nextEnded() { driver.ended(easy, code, multi) }
        }
        driver.stop(multi)
        shared.withLock { $0.alarm = nil }
        alarm.free()
        multi.free()
        driver.stopped()
    }
}
