import CLinux
import CoreMetrics
import NIOPosix
import Synchronization

/// A gateway thread shared by all apps, by its name in the metric.
package enum SharedThread: String, CaseIterable, Sendable {
    /// The event loops; a turn is one poll of their sockets and all that follows from it.
    case eventLoop = "event_loop"
    /// The loop that decides pushes.
    case push
    /// The threads that accept connections and shake hands; a turn is one event of one connection.
    case arrivals
    /// The writer of the log; a turn is the work of one write in its transaction.
    case writer
    /// The threads that answer requests; a turn is from one suspension of a request to the next.
    case requests
    /// The thread for documents, whose turns may be long: small requests never wait for it.
    case documents
}

/// Records the CPU time of the turns of a thread in the gateway's metrics.
package struct TurnRecorder: Sendable {
    /// Records the turns of one thread, from the end of each to the end of the next: reading the
    /// clock is a system call, and CPU time does not advance while the thread waits.
    struct Series: ~Copyable {
        private let recorder: TurnRecorder
        private var last = gateway_thread_cpu_nanoseconds()

        fileprivate init(_ recorder: TurnRecorder) {
            self.recorder = recorder
        }

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

    /// Records a turn with the given CPU time.
    package func record(nanoseconds: Int64) {
        recorder.record(Double(nanoseconds) / 1e9)
    }
}

/// Records the turns of event loops. One instance serves any number of them.
package final class LoopTurnRecorder: NIOEventLoopMetricsDelegate {
    /// The CPU time of a thread at the end of its last turn.
    private final class Position: Sendable {
        let nanoseconds: Atomic<Int64>

        init(_ nanoseconds: Int64) { self.nanoseconds = Atomic(nanoseconds) }
    }

    private let turn: TurnRecorder
    private let last = ThreadSpecificVariable<Position>()

    package init(_ turn: TurnRecorder) { self.turn = turn }

    /// Called on the loop's thread at the end of each turn. CPU time does not advance while the
    /// loop waits.
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
