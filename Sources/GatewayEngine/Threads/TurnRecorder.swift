import CLinux
import CoreMetrics
import NIOCore
import NIOPosix
import Synchronization

/// A thread of the gateway that all apps share, as the metric names it.
package enum SharedThread: String, CaseIterable, Sendable {
    /// The event loops, whose turn is one look at their sockets and all that follows from it.
    case eventLoop = "event_loop"
    /// The loop that decides what is pushed.
    case push
    /// The threads that accept connections and shake hands; a turn is one event of one connection.
    case arrivals
    /// The writer of the log; a turn is what one write does in its transaction.
    case writer
    /// The threads that answer requests; a turn is from one suspension of a request to the next.
    case requests
    /// The thread for documents, whose turns may be long: small requests never wait for it.
    case documents
}

/// Records the CPU time of the turns of a thread in the gateway's metrics.
package struct TurnRecorder: Sendable {
    /// Records the turns of one thread, from the end of each to the end of the next: reading the
    /// clock is a system call, and CPU time stands still while the thread waits.
    struct Series: ~Copyable {
        private let recorder: TurnRecorder
        private var last = gateway_thread_cpu_nanoseconds()

        fileprivate init(_ recorder: TurnRecorder) {
            self.recorder = recorder
        }

        /// Ends a turn.
        mutating func endTurn() {
            let now = gateway_thread_cpu_nanoseconds()
            recorder.record(nanoseconds: now - last)
            last = now
        }
    }

    private let recorder: Recorder

    init(_ recorder: Recorder) { self.recorder = recorder }

    /// Begins the first turn of the calling thread.
    func beginSeries() -> Series { Series(self) }

    /// Records a turn that used so much CPU time.
    package func record(nanoseconds: Int64) {
        recorder.record(Double(nanoseconds) / 1e9)
    }
}

/// Records the turns of event loops. One serves any number of them.
package final class LoopTurnRecorder: NIOEventLoopMetricsDelegate {
    /// The CPU time of a thread at the end of its last turn.
    private final class Position: Sendable {
        let nanoseconds: Atomic<Int64>

        init(_ nanoseconds: Int64) { self.nanoseconds = Atomic(nanoseconds) }
    }

    private let turn: TurnRecorder
    private let last = ThreadSpecificVariable<Position>()

    package init(_ turn: TurnRecorder) { self.turn = turn }

    /// Called on the loop's thread at the end of each turn. CPU time stands still while it waits.
    package func processedTick(info: NIOEventLoopTickInfo) {
        let now = gateway_thread_cpu_nanoseconds()
        guard let position = last.currentValue else {
            last.currentValue = Position(now)
            return
        }
        let before = position.nanoseconds.exchange(now, ordering: .relaxed)
        turn.record(nanoseconds: now - before)
    }
}
