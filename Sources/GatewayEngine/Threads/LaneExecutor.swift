import CLinux
import Dispatch
import Foundation
import GatewayCore
import Synchronization

/// Threads that run the jobs of tasks and measure the CPU time of each. Jobs of one lane start in
/// order of arrival; lanes take turns by cost.
///
/// Used as a task's preferred executor (SE-0417). The threads end when no job waits and the
/// executor and all its lanes are gone.
package final class LaneExecutor: Sendable {
    /// A lane, as the preferred executor of a task.
    package final class Lane: TaskExecutor {
        private let threads: LaneExecutor
        private let key: String
        private let cost: Int

        fileprivate init(_ threads: LaneExecutor, key: String, cost: Int) {
            self.threads = threads
            self.key = key
            self.cost = cost
        }

        package func enqueue(_ job: consuming ExecutorJob) {
            threads.core.append(Work(job: UnownedJob(job), lane: self), for: key, cost: cost)
        }
    }

    fileprivate struct Work: Sendable {
        let job: UnownedJob
        /// Kept alive until the job has run.
        let lane: Lane
    }

    private struct State: Sendable {
        /// A job cannot be rejected; the code that starts tasks bounds their number.
        var waiting = FairQueue<String, Work>(
            limits: .init(count: .max, cost: .max, share: .max, quantum: LaneExecutor.quantum))
        var isEnding = false
    }

    /// The jobs, separate from the executor, so that its threads do not retain it.
    private final class Core: Sendable {
        private let state = Mutex(State())
        private let arrivals = DispatchSemaphore(value: 0)

        func append(_ work: Work, for key: String, cost: Int) {
            // An unbounded queue accepts everything.
            _ = state.withLock {
                $0.waiting.append(work, for: key, cost: cost, isShareBound: false)
            }
            arrivals.signal()
        }

        func end(threadCount: Int) {
            state.withLock { $0.isEnding = true }
            for _ in 0..<threadCount { arrivals.signal() }
        }

        /// Runs jobs until the executor ends.
        func run(_ turn: TurnRecorder) {
            var turns = turn.beginSeries()
            while true {
                arrivals.wait()
                guard let work = state.withLock({ $0.waiting.popFirst()?.element }) else {
                    if state.withLock({ $0.isEnding }) { return }
                    continue
                }
                work.job.runSynchronously(on: work.lane.asUnownedTaskExecutor())
                turns.endTurn()
            }
        }
    }

    /// The cost that one turn of a lane serves, in bytes of documents.
    private static let quantum = 64 * 1024

    private let core = Core()
    private let threadCount: Int

    /// Starts threads.
    ///
    /// - Parameters:
    ///   - name: The name of the threads, as the kernel shows it.
    ///   - niceness: The nice value relative to the process's other threads, 0 to 19.
    ///   - turn: Records the CPU time of each job.
    package init(name: String, threads: Int, niceness: Int32 = 0, turn: TurnRecorder) {
        threadCount = max(1, threads)
        let core = core
        for _ in 0..<threadCount {
            let thread = Thread {
                // Thread.name reaches the kernel only after start() has returned, which may be too
                // late.
                gateway_name_thread(name)
                // A thread whose niceness cannot be set works all the same.
                if niceness > 0 { gateway_set_thread_niceness(niceness) }
                core.run(turn)
            }
            // As much as the main thread has: parsers recurse as deeply as their limits allow.
            thread.stackSize = 8 * 1024 * 1024
            thread.start()
        }
    }

    deinit { core.end(threadCount: threadCount) }

    /// Creates a lane for one task.
    ///
    /// - Parameters:
    ///   - key: The key whose turns its jobs use.
    ///   - cost: The cost of each of its jobs.
    package func lane(_ key: String, cost: Int) -> Lane {
        Lane(self, key: key, cost: cost)
    }
}
