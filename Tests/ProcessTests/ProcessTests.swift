import GatewayTestSupport
import Testing

/// Tests that run the real daemon: one at a time, for each wants the machine to itself, and on
/// threads of their own, for they wait where tasks must not.
@Suite(.serialized, .ownThread) enum ProcessTests {}

/// Runs a test on a thread of its own instead of one of the few that all tests share.
struct OwnThreadTrait: SuiteTrait, TestTrait, TestScoping {
    let isRecursive = true

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(OwnThreadExecutor()) { try await function() }
    }
}

extension Trait where Self == OwnThreadTrait {
    /// The test may block its thread.
    static var ownThread: Self { Self() }
}

/// Gives every piece of a task a thread.
private final class OwnThreadExecutor: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        onThread(stackBytes: 8 << 20) { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
