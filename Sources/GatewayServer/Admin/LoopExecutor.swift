import NIOCore

/// Runs tasks on an event loop, so that operators and probes get their responses however busy the
/// other event loops and the tasks of other requests are.
package final class LoopExecutor: TaskExecutor {
    private let loop: any EventLoop

    package init(loop: any EventLoop) {
        self.loop = loop
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
