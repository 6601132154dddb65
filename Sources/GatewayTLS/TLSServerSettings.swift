import NIOCore

/// How long and how much a TLS connection may take. The defaults are what the gateway runs with.
package struct TLSServerSettings: Sendable {
    /// From the connection's start to the end of its handshake; then it is closed.
    package var handshakeTimeout = TimeAmount.seconds(10)
    /// From the end of the handshake to the first complete request head; then it is closed.
    package var firstRequestTimeout = TimeAmount.seconds(15)
    /// From the decision to close to the close: time for what is queued to leave and for the peer
    /// to say goodbye.
    package var closeTimeout = TimeAmount.seconds(5)
    /// A stream that left its channel takes no more when this much waits behind its socket: its
    /// reader is too far behind.
    package var queuedBytesMax = 1024 * 1024
    /// What the kernel may hold for a reader of such a stream; it takes twice that for its own
    /// books (socket(7), SO_SNDBUF). Left to itself it would take megabytes for each stalled one.
    package var streamSendBufferBytes: Int32 = 64 * 1024
    /// What we owe a peer that does not read, for messages that demand an answer (key updates,
    /// refused renegotiations); more closes the connection.
    package var unreadAnswersBytesMax = 16 * 1024
    /// A stream that left its channel goes on to its next key after so many records.
    package var recordsPerKeyMax = RecordCipher.recordsPerKeyMax
    /// Whether HTTP/2 is offered, where the context has it; a listener that does not speak it must not
    /// choose it.
    package var offersHTTP2 = true
    /// Where this listener counts.
    package var counters: TLSCounters

    /// Settings with the defaults above, counting into `counters`.
    package init(counters: TLSCounters = TLSCounters()) {
        self.counters = counters
    }
}
