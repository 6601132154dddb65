import GatewayEngine
import ServiceLifecycle

/// Logs regularly how many messages about peers' events were left out.
struct LogSummaries: Service {
    private static let interval = Duration.seconds(10)

    let logs: [SampledLog]

    func run() async throws {
        try? await cancelWhenGracefulShutdown {
            while true {
                try await Task.sleep(for: Self.interval)
                for log in logs { log.summarize() }
            }
        }
    }
}
