import Foundation
import GatewayStorage
import ServiceLifecycle

/// Notes about once a second how far the log reaches, so that the next start sees whether it lost
/// its end.
package struct HeadMark: Service {
    private static let interval = Duration.seconds(1)

    let store: SQLiteStore

    package init(store: SQLiteStore) {
        self.store = store
    }

    package func run() async throws {
        try? await cancelWhenGracefulShutdown {
            while true {
                try await Task.sleep(for: Self.interval)
                await withCheckedContinuation { continuation in
                    // It waits for the disk.
                    DispatchQueue.global().async { [store] in
                        store.noteHead()
                        continuation.resume()
                    }
                }
            }
        }
    }
}
