import NIOCore

/// The time and size limits of TLS connections. The defaults are the gateway's.
package struct TLSServerSettings: Sendable {
    /// The time from a connection's start to the end of its handshake; after it the connection is
    /// closed.
    package var handshakeTimeout = TimeAmount.seconds(10)
    /// The time from the end of the handshake to the first complete request head; after it the
    /// connection is closed.
    package var firstRequestTimeout = TimeAmount.seconds(15)
    /// The time from the decision to close to the close: for queued bytes to leave, and for the
    /// peer to end its side.
    package var closeTimeout = TimeAmount.seconds(5)
    /// The time within which a peer that is waited for has to send something more.
    package var lingerSilence = TimeAmount.seconds(5)
    /// The most bytes that may wait for the socket of a stream that left its channel. The stream
    /// refuses further bytes then: its reader is too far behind.
    package var queuedBytesMax = 1024 * 1024
    /// The send buffer of such a stream's socket, in bytes; the kernel doubles it for its
    /// bookkeeping (socket(7), SO_SNDBUF). By default the kernel would hold megabytes for each
    /// stalled reader.
    package var streamSendBufferBytes: Int32 = 64 * 1024
    /// The most bytes of unread answers to a peer's messages that demand one (key updates, refused
    /// renegotiations); with more the connection is closed.
    package var unreadAnswersBytesMax = 16 * 1024
    /// The input budget of such a stream's reader, who has no reason to send anything; when it is
    /// exceeded the stream ends.
    package var readerInput = InputBudget.Rate(burst: 128 * 1024, perSecond: 4 * 1024)
    /// The time from the first to the last byte of a record that such a reader sends; the stream is
    /// closed after it, within twice this time.
    package var recordTimeout = TimeAmount.seconds(30)
    /// The budget of a peer in a channel for records without content, such as key updates; when it
    /// is exceeded the connection is closed with an alert.
    package var emptyRecords = InputBudget.Rate(burst: 32 * 1024, perSecond: 4 * 1024)
    /// The budget for input before the first request, including the handshake; when it is exceeded
    /// the connection is closed.
    package var arrivalInput = InputBudget.Rate(burst: 128 * 1024, perSecond: 4 * 1024)
    /// The number of records after which a stream that left its channel uses its next key.
    package var recordsPerKeyMax = RecordCipher.recordsPerKeyMax
    /// Whether HTTP/2 is offered, if the context has it; a listener that does not speak HTTP/2 must
    /// not choose it.
    package var offersHTTP2 = true
    /// Returns the protocol by which a trusted proxy states the addresses of its clients; `nil` for
    /// any other peer. Called on an accepting thread with the 4 or 16 bytes of the peer's IP
    /// address, valid until it returns. The property is `nil` where no proxy is trusted.
    package var proxyProtocol: (@Sendable (_ peer: UnsafeRawBufferPointer) -> ProxyProtocol?)?
    /// The counters of this listener.
    package var counters: TLSCounters
    /// Called on a thread that accepts connections when a handshake failed, unless the peer merely
    /// left, as the health check of a balancer does.
    package var onHandshakeFailure:
        (@Sendable (_ from: SourceAddress, HandshakeFailure, _ reason: String) -> Void)?
    /// Called on a thread that accepts connections when it closed one, whose address it states, or one
    /// has to wait; at most every 20 ms.
    package var onRefusal: (@Sendable (ConnectionRefusal, _ from: SourceAddress?) -> Void)?
    /// Called on a thread that accepts connections, or on an event loop, when a connection or a
    /// request is ended because of what its peer did after the handshake.
    package var onViolation:
        (@Sendable (_ from: SourceAddress, PeerViolation, _ reason: String) -> Void)?
    /// Called on a thread that accepts connections, with the CPU time in nanoseconds that one event
    /// of one connection took.
    package var onArrivalTurn: (@Sendable (_ nanoseconds: Int64) -> Void)?

    /// Settings with the defaults above, counting into `counters`.
    package init(counters: TLSCounters = TLSCounters()) {
        self.counters = counters
    }

    /// Counts and reports the end of a connection, if its peer caused it.
    func report(_ error: TLSError, of peer: SourceAddress, to counters: TLSLoopCounters?) {
        guard case .protocolViolation(let violation) = error.code else { return }
        counters?.endConnection(violation)
        onViolation?(peer, violation, error.message)
    }
}
