import Glibc
import NIOCore

/// Detaching a connection from its channel, for `TLSStreams`.
extension TLSServerHandler {
    /// Whether the connection can leave its channel now: it is open, speaks HTTP/1.1, neither side
    /// has ended, and everything written has reached the socket.
    package var isDetachable: Bool {
        phase == .open && !inputClosed && !outputClosed && pending.isEmpty && queuedBytes == 0
            && negotiatedProtocol != "h2"
    }

    /// Returns the connection with a second descriptor of its socket, and closes the channel, which
    /// closes the first one. Nothing is sent to the peer.
    ///
    /// All input received so far is in OpenSSL's buffer or has been handed on, so none is lost.
    ///
    /// - Returns: `nil` when the connection cannot leave now, or the kernel provides no
    ///   descriptor; the connection stays with its channel then.
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

    /// Returns the channel's socket. NIO's public way to it looks the transport's type up by its
    /// name, which takes as long as the rest of detaching.
    private static func socket<Core: NIOTransportAccessibleChannelCore>(
        of core: Core
    ) -> NIOBSDSocket.Handle? {
        try? core.withUnsafeTransport { $0 as? NIOBSDSocket.Handle }
    }
}
