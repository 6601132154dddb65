import CCurl
import CurlMulti
import GatewayCore
import Synchronization

/// Sends pushes to one environment of APNs with one team's key, or with a certificate.
///
/// The pool opens as few connections as its pushes need (``GatewayCore/ConnectionScheduler``), all
/// on one thread. It resends a push that APNs has certainly not processed on another connection,
/// and replaces an expired provider token. The caller decides everything else by the result. When
/// APNs refuses the key or a topic, the pool sends nothing more for it until ``resume()``.
package final class APNsPool: Sendable {
    /// Receives the result of a push on the pool's thread, and must not block.
    package typealias Finished = @Sendable (APNsPushResult) -> Void

    private let shared = Shared()
    private let loop: CurlLoop<APNsDriver>?

    /// Creates a pool. No connection is opened before the first push.
    package init(_ configuration: Configuration) {
        let shared = shared
        let loop = CurlLoop(
            name: "apns", corkedMax: 0,
            configure: { multi in
                // Retired connections stay until their pushes in flight have ended.
                multi.set(CURLMOPT_MAXCONNECTS, 16 * configuration.connectionsMax)
            },
            driver: { APNsDriver(configuration, shared) })
        self.loop = loop
        shared.loop.withLock { $0 = loop }
    }

    deinit {
        loop?.stop()
        shared.loop.withLock { $0 = nil }
    }

    /// Sends a push, and calls `finished` once with its result.
    package func push(_ push: APNsPush, _ finished: @escaping Finished) {
        guard loop?.submit(.push(push, finished)) != true else { return }
        // There is no thread: libcurl has no memory, or the process no descriptors.
        finished(
            APNsPushResult(
                reaction: APNsReaction(.retry(.connection)), outcome: nil, id: "",
                uniqueID: nil, milliseconds: 0, requests: 0))
    }

    /// Sends a push and returns its result. A push in flight cannot be cancelled, so a cancelled
    /// task waits as well.
    package func push(_ push: APNsPush) async -> APNsPushResult {
        await withCheckedContinuation { continuation in
            self.push(push) { continuation.resume(returning: $0) }
        }
    }

    /// Ends the stops after APNs refused the key or a topic, so that pushes are sent again. Call it
    /// once the configuration at APNs, or a clock, has been corrected.
    package func resume() {
        _ = loop?.submit(.resume)
    }

    /// Accepts no more pushes, gives up waiting ones, and returns when none is in flight.
    package func drain() async {
        await withCheckedContinuation { continuation in
            if loop?.submit(.drain(continuation)) != true { continuation.resume() }
        }
    }

    /// The pool's current size and its totals.
    package var figures: APNsPoolStats { shared.figures.withLock { $0 } }

    /// The state that the pool's thread shares with all others.
    final class Shared: Sendable {
        let figures = Mutex(APNsPoolStats())
        fileprivate let loop = Mutex<CurlLoop<APNsDriver>?>(nil)

        /// Sends the thread a command, if it still runs.
        func submit(_ command: APNsDriver.Command) {
            _ = loop.withLock { $0 }?.submit(command)
        }
    }
}

/// The current size of a pool and its totals.
package struct APNsPoolStats: Sendable, Hashable {
    /// The number of pushes that wait to be sent.
    package var waiting = 0
    /// The number of pushes in flight.
    package var underWay = 0
    /// The number of usable connections.
    package var connections = 0
    /// The number of attempts to open a connection, successful or not.
    package var opened = 0
    /// The number of provider tokens that were created or taken over from other nodes.
    package var providerTokens = 0
}
