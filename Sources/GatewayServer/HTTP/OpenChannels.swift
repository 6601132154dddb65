import NIOCore
import Synchronization

/// The open channels, which are asked to end when the gateway stops, and the number of working
/// routes.
package final class OpenChannels: Sendable {
    private struct State {
        var channels: [ObjectIdentifier: any Channel] = [:]
        var routesAtWork = 0
        /// Resumed when nothing is open any more.
        var waiter: CheckedContinuation<Void, Never>?
        var isStopping = false

        /// The waiter, if there is nothing left to wait for.
        mutating func takeWaiter() -> CheckedContinuation<Void, Never>? {
            guard isStopping, channels.isEmpty, routesAtWork == 0 else { return nil }
            defer { waiter = nil }
            return waiter
        }
    }

    private let state = Mutex(State())

    package init() {}

    /// Counts a channel until it closes; returns false when the gateway is stopping.
    package func add(_ channel: any Channel) -> Bool {
        let name = ObjectIdentifier(channel)
        let isIn = state.withLock { state in
            if !state.isStopping { state.channels[name] = channel }
            return !state.isStopping
        }
        if isIn {
            channel.closeFuture.whenComplete { _ in self.end { $0.channels[name] = nil } }
        }
        return isIn
    }

    /// Counts a route that starts working; its channel may close before it responds.
    func beginAnswer() {
        state.withLock { $0.routesAtWork += 1 }
    }

    /// Counts a route that has responded.
    func endAnswer() { end { $0.routesAtWork -= 1 } }

    private func end(_ change: (inout State) -> Void) {
        let waiter = state.withLock { state in
            change(&state)
            return state.takeWaiter()
        }
        waiter?.resume()
    }

    /// Asks every channel to finish its work and close, and accepts no more.
    package func stop() {
        end { $0.isStopping = true }
        for channel in state.withLock({ Array($0.channels.values) }) {
            channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        }
    }

    /// Closes every channel, whatever its state.
    func cut() {
        for channel in state.withLock({ Array($0.channels.values) }) {
            channel.close(promise: nil)
        }
    }

    /// Returns when the gateway stops, all channels have closed and all routes have responded. May
    /// be called once.
    func ended() async {
        await withCheckedContinuation { continuation in
            end { $0.waiter = continuation }
        }
    }
}
