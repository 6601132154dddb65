import Glibc
import Synchronization

/// SIGINT, SIGTERM or SIGHUP arrived: whatever runs stops, and cleans up on its way out.
struct Interruption: Error {
    let signal: Int32

    /// Turns those signals from ending this process into being noticed by ``check()``, and a
    /// closed pipe into a failed write.
    static func install() {
        arrived.store(0, ordering: .relaxed)
        var ours = sigset_t()
        sigemptyset(&ours)
        for number in [SIGINT, SIGTERM, SIGHUP] {
            Glibc.signal(number) { arrived.store($0, ordering: .relaxed) }
            sigaddset(&ours, number)
        }
        // Whoever started this process may have blocked them, and that is inherited.
        pthread_sigmask(SIG_UNBLOCK, &ours, nil)
        Glibc.signal(SIGPIPE, SIG_IGN)
    }

    /// Throws once a signal arrived. Everything that waits calls it several times a second.
    static func check() throws {
        let signal = arrived.load(ordering: .relaxed)
        if signal != 0 { throw Interruption(signal: signal) }
    }
}

private let arrived = Atomic<Int32>(0)

/// The measurement cannot be made or went wrong.
struct BenchFailure: Error, CustomStringConvertible {
    /// The reason, for a person.
    let description: String

    /// A failure with these words.
    init(_ description: String) { self.description = description }
}

func monotonicNanoseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}
