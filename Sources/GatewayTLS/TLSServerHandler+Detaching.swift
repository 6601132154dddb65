import Glibc
import NIOCore

/// How a connection leaves its channel for `TLSStreams`.
extension TLSServerHandler {
    /// Whether the connection can leave now: it is open, speaks HTTP/1.1, neither side has ended,
    /// and everything written has reached the socket.
    package var isDetachable: Bool {
        phase == .open && !inputClosed && !outputClosed && pending.isEmpty && queuedBytes == 0
            && negotiatedProtocol != "h2"
    }

    /// Gives away the connection with a second descriptor of the socket, and closes the channel,
    /// which closes the first; nothing is said to the peer.
    ///
    /// What the peer sent so far is with OpenSSL or was handed on: nothing is left in between.
    ///
    /// - Returns: `nil` when the connection cannot leave now, or the kernel gives no descriptor;
    ///   then it stays with its channel.
    package func detach() -> TLSConnection? {
        guard isDetachable, let connection, let context else { return nil }
        guard let core = context.channel._channelCore as? any NIOTransportAccessibleChannelCore,
            let socket = Self.socket(of: core)
        else { return nil }
        let descriptor = fcntl(socket, F_DUPFD_CLOEXEC, 0)
        guard descriptor >= 0 else { return nil }
        let leaving = TLSConnection(connection, socket: descriptor)
        release()
        context.close(promise: nil)
        return leaving
    }

    /// NIO's own way to it looks the type of transport up by its name, which takes as long as all
    /// the rest of leaving.
    private static func socket<Core: NIOTransportAccessibleChannelCore>(
        of core: Core
    ) -> NIOBSDSocket.Handle? {
        try? core.withUnsafeTransport { $0 as? NIOBSDSocket.Handle }
    }
}
