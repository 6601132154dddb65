import GatewayTestSupport
import Testing

/// Tests that run the real daemon: one at a time, because each needs the machine to itself, and on
/// threads of their own, because they block where tasks must not.
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
    /// Allows the test to block its thread.
    static var ownThread: Self { Self() }
}

/// Runs every job of a task on a thread of its own.
private final class OwnThreadExecutor: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        onThread(stackBytes: 8 << 20) { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
