import Foundation
import GatewayStorage
import ServiceLifecycle

/// Records the log's head about once a second, so that the next start can detect a lost tail.
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
                    // This call waits for the disk.
                    DispatchQueue.global().async { [store] in
                        store.noteHead()
                        continuation.resume()
                    }
                }
            }
        }
    }
}
