import GatewayEngine
import GatewayOperations
import ServiceLifecycle
import UnixSignals

/// Has the configuration reloaded on SIGHUP, and when a file that it names becomes another.
struct ConfigurationWatch: Service {
    /// How often the files are looked at.
    private static let interval = Duration.seconds(2)

    let reload: ConfigurationReload
    let current: CurrentConfiguration

    func run() async throws {
        // What was refused is told by the reload itself, and the old configuration goes on.
        try? await cancelWhenGracefulShutdown {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for await _ in await UnixSignalsSequence(trapping: .sighup) {
                        _ = try? await reload.reload(.signal)
                    }
                }
                group.addTask {
                    var watch = FileWatch()
                    while true {
                        if watch.look(current.value.watchedFiles) {
                            _ = try? await reload.reload(.fileChange)
                        }
                        try await Task.sleep(for: Self.interval)
                    }
                }
                try await group.waitForAll()
            }
        }
    }
}
