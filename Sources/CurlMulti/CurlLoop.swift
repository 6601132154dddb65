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
}

/// The one thread that calls libcurl's multi interface, and the queue of what it is to do.
package final class CurlLoop<Driver: CurlDriver>: Sendable {
    private struct Shared {
        var commands: [Driver.Command] = []
        var multi: CurlMulti?
        var isStopped = false
        /// Whether the thread sleeps, or is about to.
        var isAsleep = false
    }

    private let shared: Mutex<Shared>

    /// A loop whose thread runs until ``stop()``; `nil` when libcurl has no memory, or when it
    /// knows no option that `configure` sets.
    ///
    /// - Parameters:
    ///   - name: Of the thread.
    ///   - configure: Bounds what the requests share; `false` when libcurl does not.
    ///   - driver: Makes the driver, on the thread.
    package init?(
        name: String, configure: (CurlMulti) -> Bool = { _ in true },
        driver: @escaping @Sendable () -> Driver
    ) {
        guard let multi = CurlMulti() else { return nil }
        guard configure(multi) else {
            multi.free()
            return nil
        }
        shared = Mutex(Shared(multi: multi))
        let thread = Thread { [self] in run(multi, driver()) }
        thread.name = name
        thread.start()
    }

    /// Asks for something.
    ///
    /// - Returns: Whether the thread will do it; not after ``stop()``.
    package func submit(_ command: Driver.Command) -> Bool {
        shared.withLock { shared in
            guard !shared.isStopped, let multi = shared.multi else { return false }
            shared.commands.append(command)
            if shared.isAsleep {
                shared.isAsleep = false
                multi.wake()
            }
            return true
        }
    }

    /// Ends every request and the thread, soon. What was submitted before is still obeyed.
    package func stop() {
        shared.withLock { shared in
            shared.isStopped = true
            shared.multi?.wake()
        }
    }

    // MARK: The thread

    private func run(_ multi: CurlMulti, _ driver: Driver) {
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
            multi.perform()
            while let (easy, code) = multi.nextEnded() { driver.ended(easy, code, multi) }
            let patience = driver.turned(multi)
            let mayRest = shared.withLock { shared in
                shared.isAsleep = shared.commands.isEmpty && !shared.isStopped
                return shared.isAsleep
            }
            if mayRest { multi.poll(patience) }
        }
        driver.stop(multi)
        shared.withLock { $0.multi = nil }
        multi.free()
        driver.stopped()
    }
}
