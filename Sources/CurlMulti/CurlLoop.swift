import CCurl
import Foundation
import Synchronization

/// What a ``CurlLoop`` carries out: made, called and let go by the loop's thread alone.
package protocol CurlDriver: SendableMetatype {
    /// What other threads ask for.
    associatedtype Command: Sendable

    /// Does what was asked for.
    mutating func obey(_ command: Command, _ multi: CurlMulti)

    /// A request has ended, with `CURLE_OK` or not. It is still in `multi`.
    mutating func ended(_ easy: CurlEasy, _ code: CURLcode, _ multi: CurlMulti)

    /// A socket that ``CurlMulti/watch(_:toWrite:)`` was asked for can be read or written.
    mutating func ready(_ socket: curl_socket_t, _ multi: CurlMulti)

    /// All that could be done without waiting is done.
    ///
    /// - Returns: How long the thread may sleep when nothing happens, in milliseconds.
    mutating func turned(_ multi: CurlMulti) -> Int32

    /// The loop ends: no handle may be left in `multi`.
    mutating func stop(_ multi: CurlMulti)

    /// The loop has ended, and every connection is closed.
    mutating func stopped()
}

extension CurlDriver {
    /// Does nothing.
    package mutating func stopped() {}
    /// Does nothing: no socket is watched.
    package mutating func ready(_ socket: curl_socket_t, _ multi: CurlMulti) {}
}

/// The one thread that calls libcurl's multi interface, and the queue of what it is to do.
package final class CurlLoop<Driver: CurlDriver>: Sendable {
    private struct Shared {
        var commands: [Driver.Command] = []
        var isStopped = false
        /// Rings while the thread is there.
        var alarm: CurlAlarm?
        /// Whether the thread sleeps, or is about to.
        var isAsleep = false
    }

    /// What is made by one thread and then used by another alone.
    private struct Handover: @unchecked Sendable {
        // Sound: `init` hands it to the thread and does not touch it again.
        let multi: CurlMulti
    }

    private let shared: Mutex<Shared>

    /// A loop whose thread runs until ``stop()``; `nil` when libcurl has no memory, the process
    /// has too many descriptors, or libcurl knows no option that `configure` sets.
    ///
    /// - Parameters:
    ///   - name: Of the thread.
    ///   - corkedMax: While there are no more sockets than these, what is written to each of them
    ///     before the thread sleeps goes out together.
    ///   - configure: Bounds what the requests share; `false` when libcurl does not.
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

    /// Asks for something.
    ///
    /// - Returns: Whether the thread will do it; not after ``stop()``.
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

    /// Ends every request and the thread, soon. What was submitted before is still obeyed.
    package func stop() {
        shared.withLock { shared in
            shared.isStopped = true
            shared.alarm?.ring()
        }
    }

    // MARK: The thread

    private func run(_ multi: CurlMulti, _ alarm: CurlAlarm, _ driver: Driver) {
        // OpenSSL writes to sockets that the peer has closed.
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
