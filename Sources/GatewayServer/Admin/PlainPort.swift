import NIOCore
import ServiceLifecycle

/// A port without TLS whose requests are answered on one thread, so that operators and probes have
/// their answers whatever the event loops and the tasks of other requests are busy with.
struct PlainPort<Server: Service>: Service {
    let application: Server
    let loop: any EventLoop

    func run() async throws {
        let executor = LoopExecutor(loop: loop)
        try await withTaskExecutorPreference(executor) { try await application.run() }
    }
}

/// Runs tasks on an event loop.
private final class LoopExecutor: TaskExecutor {
    private let loop: any EventLoop

    init(loop: any EventLoop) {
        self.loop = loop
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
