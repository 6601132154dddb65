import ServiceLifecycle

/// Work that the gateway repeats until it stops.
struct RegularWork: Service {
    let interval: Duration
    let work: @Sendable () async -> Void

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            while true {
                try await Task.sleep(for: interval)
                await work()
            }
        }
    }
}
