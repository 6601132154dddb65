import NIOCore

/// How long and how much a TLS connection may take. The defaults are what the gateway runs with.
package struct TLSServerSettings: Sendable {
    /// From the connection's start to the end of its handshake; then it is closed.
    package var handshakeTimeout = TimeAmount.seconds(10)
    /// From the decision to close to the close: time for what is queued to leave and for the peer
    /// to say goodbye.
    package var closeTimeout = TimeAmount.seconds(5)
    /// Plaintext written before the handshake is done; more closes the connection.
    package var bytesBeforeHandshakeMax = 256 * 1024
    /// `sealAndSend` refuses when NIO holds this much of ours: the reader is too far behind.
    package var queuedBytesMax = 1024 * 1024
    /// What we owe a peer that does not read, for messages that demand an answer (key updates,
    /// refused renegotiations); more closes the connection.
    package var unreadAnswersBytesMax = 16 * 1024
    /// Where this listener counts.
    package var counters: TLSCounters

    /// Settings with the defaults above, counting into `counters`.
    package init(counters: TLSCounters = TLSCounters()) {
        self.counters = counters
    }
}

/// What became of bytes given to `TLSServerHandler.sealAndSend`.
package enum DirectWrite: Equatable, Sendable {
    /// The kernel has taken all of it.
    case sent
    /// It waits in NIO, in order; `onDrained` tells when nothing waits any more.
    case queued
    /// Nothing was taken and nothing will be sent.
    case refused(Refusal)

    /// Why nothing was taken.
    package enum Refusal: Equatable, Sendable {
        /// The handshake is not done.
        case handshaking
        /// The connection is closed, closing, or closed for output.
        case closed
        /// HTTP/2 was negotiated: its frames and windows belong to the HTTP/2 handler.
        case http2
        /// `queuedBytesMax` is reached.
        case queueFull
    }
}
