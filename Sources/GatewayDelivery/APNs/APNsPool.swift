import CCurl
import CurlMulti
import GatewayCore
import GatewaySigning
import Synchronization

/// Sends pushes to one environment of APNs with one team's key, or with a certificate.
///
/// Pushes go over as few connections as carry them (``GatewayCore/APNsLanes``), all of one thread.
/// What can be mended at once is: a push that APNs has certainly not looked at is sent again by
/// another connection, a provider token that expired is replaced. Everything else is for the caller
/// to do, as the result says. When APNs refuses key or topic, nothing more of that is sent until
/// ``resume()``.
package final class APNsPool: Sendable {
    /// Told what came of a push, on the pool's thread: it must not wait for anything.
    package typealias Finished = @Sendable (APNsPushResult) -> Void

    private let outside = Outside()
    private let loop: CurlLoop<APNsDriver>?

    /// A pool; no connection is opened before the first push.
    package init(_ configuration: Configuration) {
        let outside = outside
        let loop = CurlLoop(
            name: "apns", corkedMax: 0,
            configure: { multi in
                // Retired connections end what is under way on them.
                multi.set(CURLMOPT_MAXCONNECTS, 16 * configuration.connectionsMax)
            },
            driver: { APNsDriver(configuration, outside) })
        self.loop = loop
        outside.loop.withLock { $0 = loop }
    }

    deinit {
        loop?.stop()
        outside.loop.withLock { $0 = nil }
    }

    /// Sends a push.
    ///
    /// - Parameter finished: Called once, with what came of it.
    package func push(_ push: APNsPush, _ finished: @escaping Finished) {
        guard loop?.submit(.push(push, finished)) != true else { return }
        // There is no thread: libcurl has no memory, or the process no descriptors.
        finished(
            APNsPushResult(
                reaction: APNsReaction(.retry(.connection)), outcome: nil, id: push.id ?? "",
                uniqueID: nil, milliseconds: 0, requests: 0))
    }

    /// Sends a push and waits for what comes of it. A push that is on its way cannot be taken back,
    /// so that a task which is cancelled waits as well.
    package func push(_ push: APNsPush) async -> APNsPushResult {
        await withCheckedContinuation { continuation in
            self.push(push) { continuation.resume(returning: $0) }
        }
    }

    /// Sends again what APNs refused: the configuration there, or its clock, was mended.
    package func resume() {
        _ = loop?.submit(.resume)
    }

    /// Takes no more pushes, gives those up that wait, and returns when what is under way has
    /// ended.
    package func drain() async {
        await withCheckedContinuation { continuation in
            if loop?.submit(.drain(continuation)) != true { continuation.resume() }
        }
    }

    /// How much there is to do, and was done.
    package var figures: APNsPoolFigures { outside.figures.withLock { $0 } }

    /// What the pool's thread and all others know.
    final class Outside: Sendable {
        let figures = Mutex(APNsPoolFigures())
        fileprivate let loop = Mutex<CurlLoop<APNsDriver>?>(nil)

        /// Asks the thread for something, if it is still there.
        func submit(_ command: APNsDriver.Command) {
            _ = loop.withLock { $0 }?.submit(command)
        }
    }
}

/// How much a pool has to do, and did.
package struct APNsPoolFigures: Sendable, Hashable {
    /// Pushes that wait to be sent.
    package var waiting = 0
    /// Pushes under way.
    package var underWay = 0
    /// Connections in use.
    package var connections = 0
    /// Connections that were opened, or tried to be.
    package var opened = 0
    /// Provider tokens that were minted or taken over from other nodes.
    package var providerTokens = 0
}
