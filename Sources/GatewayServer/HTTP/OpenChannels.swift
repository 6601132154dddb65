import NIOCore
import NIOExtras
import Synchronization

/// The connections that are channels, so that they can be told when the gateway stops, and the
/// requests that routes are answering.
final class OpenChannels: Sendable {
    private struct State {
        var channels: [ObjectIdentifier: any Channel] = [:]
        var answersUnderWay = 0
        /// Resumed when all is over.
        var waiter: CheckedContinuation<Void, Never>?
        var isStopping = false

        /// The waiter, if there is nothing left to wait for.
        mutating func takeWaiter() -> CheckedContinuation<Void, Never>? {
            guard isStopping, channels.isEmpty, answersUnderWay == 0 else { return nil }
            defer { waiter = nil }
            return waiter
        }
    }

    private let state = Mutex(State())

    /// Counts a channel in until it closes; answers false when the gateway is stopping.
    func add(_ channel: any Channel) -> Bool {
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

    /// A route begins with a request. Its channel may close before it has an answer.
    func beginAnswer() {
        state.withLock { $0.answersUnderWay += 1 }
    }

    /// A route is done with a request.
    func endAnswer() { end { $0.answersUnderWay -= 1 } }

    private func end(_ change: (inout State) -> Void) {
        let waiter = state.withLock { state in
            change(&state)
            return state.takeWaiter()
        }
        waiter?.resume()
    }

    /// Asks every channel to end what it is doing and close, and takes no more.
    func stop() {
        end { $0.isStopping = true }
        for channel in state.withLock({ Array($0.channels.values) }) {
            channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        }
    }

    /// Closes every channel, whatever it is doing.
    func cut() {
        for channel in state.withLock({ Array($0.channels.values) }) {
            channel.close(promise: nil)
        }
    }

    /// Returns when the gateway stops, and all channels have closed and all answers are given. Waited
    /// for once.
    func ended() async {
        await withCheckedContinuation { continuation in
            end { $0.waiter = continuation }
        }
    }
}
