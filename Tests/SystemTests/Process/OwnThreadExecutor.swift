import GatewayTestSupport

/// Runs every job of a task on a thread of its own instead of one of the few that all tasks share.
final class OwnThreadExecutor: TaskExecutor {
    /// The executor of any task.
    static let shared = OwnThreadExecutor()

    private init() {}

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        onThread(stackBytes: 8 << 20) { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
