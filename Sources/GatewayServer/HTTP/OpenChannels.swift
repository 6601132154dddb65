import HummingbirdCore
import NIOCore
import NIOExtras
import Synchronization

/// The connections that are channels, so that they can be told when the gateway stops.
final class OpenChannels: Sendable {
    private struct State {
        var channels: [ObjectIdentifier: any Channel] = [:]
        /// Called when the last one has closed, once stopping has begun.
        var onEmpty: (@Sendable () -> Void)?
        var isStopping = false
    }

    private let state = Mutex(State())

    /// Counts a channel in until it closes; answers false when the gateway is stopping.
    func add(_ channel: any Channel) -> Bool {
        let name = ObjectIdentifier(channel)
        let isIn = state.withLock { state in
            if !state.isStopping { state.channels[name] = channel }
            return !state.isStopping
        }
        if isIn { channel.closeFuture.whenComplete { _ in self.remove(name) } }
        return isIn
    }

    private func remove(_ name: ObjectIdentifier) {
        let onEmpty = state.withLock { state in
            state.channels[name] = nil
            return state.channels.isEmpty ? state.onEmpty : nil
        }
        onEmpty?()
    }

    /// Asks every channel to end what it is doing and close, and takes no more.
    ///
    /// - Parameter onEmpty: Called once, when all have closed.
    func stop(onEmpty: @escaping @Sendable () -> Void) {
        let channels = state.withLock { state in
            state.isStopping = true
            if !state.channels.isEmpty { state.onEmpty = onEmpty }
            return Array(state.channels.values)
        }
        if channels.isEmpty { onEmpty() }
        for channel in channels {
            channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        }
    }
}
