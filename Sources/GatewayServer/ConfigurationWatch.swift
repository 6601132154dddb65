import GatewayOperations
import ServiceLifecycle
import UnixSignals

/// Reloads the configuration on SIGHUP, and when a file that it names changes.
struct ConfigurationWatch: Service {
    /// The interval at which the files are checked.
    private static let interval = Duration.seconds(2)

    let reload: ConfigurationReload
    let current: CurrentConfiguration
    /// Whether SIGHUP reloads.
    let trapsSignal: Bool

    func run() async throws {
        // The reload itself reports a rejected configuration, and the old one stays in force.
        try? await cancelWhenGracefulShutdown {
            try await withThrowingTaskGroup(of: Void.self) { group in
                if trapsSignal {
                    group.addTask {
                        for await _ in await UnixSignalsSequence(trapping: .sighup) {
                            _ = try? await reload.reload(.signal)
                        }
                    }
                }
                group.addTask {
                    var watch = FileWatch()
                    while true {
                        let configuration = current.value
                        if watch.look(configuration.watchedFiles, read: configuration.filesRead) {
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
