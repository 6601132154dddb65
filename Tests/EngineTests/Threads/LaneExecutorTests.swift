import CoreMetrics
import Foundation
import GatewayTelemetry
import GatewayTestSupport
import Synchronization
import Testing

@testable import GatewayEngine

/// The threads on which tasks run, and their order.
@Suite struct LaneExecutorTests {
    private static func executor(_ name: String) -> (LaneExecutor, GatewayMetrics) {
        let metrics = GatewayMetrics()
        return (
            LaneExecutor(name: name, threads: 1, turn: metrics.turns(of: .documents)), metrics
        )
    }

    private final class Log: Sendable {
        let order = Mutex<[String]>([])
        let isHeld = Mutex(true)

        func note(_ text: String) { order.withLock { $0.append(text) } }
    }

    private static var threadName: String? { Thread.current.name }

    /// Keeps the thread busy for 20 ms of its own time, which passes only while it runs.
    private static func spin() {
        func milliseconds() -> Int {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return time.tv_sec * 1_000 + time.tv_nsec / 1_000_000
        }
        let end = milliseconds() + 20
        while milliseconds() < end {}
    }

    @Test("a task runs on the executor's thread, after each wait too")
    func runsOnItsThread() async {
        let (executor, _) = Self.executor("lane-test")
        let names = await Task(executorPreference: executor.lane("app", cost: 1)) {
            let before = Self.threadName
            await Task.yield()
            return [before, Self.threadName]
        }.value
        #expect(names == ["lane-test", "lane-test"])
    }

    /// Records the thread on which it is freed.
    private final class Freed: Sendable {
        let log: Log
        init(_ log: Log) { self.log = log }
        deinit { log.note(LaneExecutorTests.threadName ?? "") }
    }

    @Test("what others have let go of is freed on the thread for documents")
    func documentsAreFreedOnTheirThread() async throws {
        let documents = DocumentWork(turn: GatewayMetrics().turns(of: .documents))
        let log = Log()
        documents.release(nil, of: "app")
        documents.release(Freed(log), of: "app", after: .milliseconds(10))
        try await eventually("it is freed") { log.order.withLock { !$0.isEmpty } }
        #expect(log.order.withLock { $0 } == ["documents"])
    }

    @Test("lanes take turns, and one lane keeps its order")
    func lanesTakeTurns() async {
        let (executor, _) = Self.executor("lane-test")
        let log = Log()
        // Occupies the thread until all others wait.
        let holder = Task(executorPreference: executor.lane("holder", cost: 1)) {
            while log.isHeld.withLock({ $0 }) { usleep(1_000) }
        }
        let busy = executor.lane("busy", cost: 64 * 1024)
        var tasks: [Task<Void, Never>] = []
        for index in 0..<4 {
            tasks.append(
                Task(executorPreference: busy) { log.note("busy \(index)") })
        }
        tasks.append(
            Task(executorPreference: executor.lane("late", cost: 64 * 1024)) {
                log.note("late")
            })
        log.isHeld.withLock { $0 = false }
        await holder.value
        for task in tasks { await task.value }
        let seen = log.order.withLock { $0 }
        #expect(seen.filter { $0 != "late" } == (0..<4).map { "busy \($0)" })
        #expect((seen.firstIndex(of: "late") ?? .max) <= 1, "\(seen)")
    }

    @Test("large documents leave the thread of the request, small ones do not")
    func largeDocumentsHaveTheirThread() async {
        let metrics = GatewayMetrics()
        let (requests, _) = Self.executor("requests-test")
        let documents = DocumentWork(turn: metrics.turns(of: .documents))
        let names = await Task(executorPreference: requests.lane("requests", cost: 1)) {
            let small = await documents.run(.bytes(100), for: "app") { Self.threadName }
            let large = await documents.run(.bytes(DocumentWork.smallBytesMax), for: "app") {
                Self.threadName
            }
            let any = await documents.run(.large, for: "app") {
                await Task.yield()
                return Self.threadName
            }
            await Task.yield()
            return [small, large, any, Self.threadName]
        }.value
        #expect(names == ["requests-test", "documents", "documents", "requests-test"])
    }

    @Test("each turn's CPU time is recorded, and waiting is none")
    func turnsAreRecorded() async {
        let (executor, metrics) = Self.executor("lane-test")
        await Task(executorPreference: executor.lane("app", cost: 1)) {
            Self.spin()
            await Task.yield()
            usleep(20_000)
        }.value
        let reading = metrics.registry.readings(of: .turnCPU).first { $0.labels == ["documents"] }
        guard case .histogram(let bounds, let counts) = reading?.value else {
            Issue.record("no histogram")
            return
        }
        // The turn that ends the task may not be recorded yet; the previous one is.
        let over = zip(bounds, counts).filter { $0.0 > 0.005 }.map(\.1).reduce(0, +)
        #expect(over == 1, "\(counts)")
        #expect(counts.reduce(0, +) >= 1)
    }

    @Test("an executor that is gone ends its threads once nothing waits")
    func threadsEnd() async throws {
        let task: Task<String?, Never>
        do {
            let (executor, _) = Self.executor("gone-test")
            task = Task(executorPreference: executor.lane("app", cost: 1)) {
                await Task.yield()
                return Self.threadName
            }
        }
        #expect(await task.value == "gone-test")
        try await eventually("the thread ends") { !Self.threadNames.contains("gone-test") }
    }

    private static var threadNames: Set<String> {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        return Set(
            tasks.compactMap {
                try? String(contentsOfFile: "/proc/self/task/\($0)/comm", encoding: .utf8)
                    .trimmingCharacters(in: .newlines)
            })
    }
}
