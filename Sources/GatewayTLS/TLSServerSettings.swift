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
    /// Input that the reader of such a stream may send, who has nothing to say; more ends the stream.
    package var readerInput = InputBudget.Rate(burst: 128 * 1024, perSecond: 4 * 1024)
    /// From the first byte of a record that such a reader sends to its last; then the stream is
    /// closed, within twice this time.
    package var recordTimeout = TimeAmount.seconds(30)
    /// Input without content, such as key updates and tiny records, that a peer in a channel may
    /// send; more closes the connection.
    package var emptyInput = InputBudget.Rate(burst: 32 * 1024, perSecond: 64 * 1024)
    /// Input that may come before the first request, the handshake included; more closes the
    /// connection.
    package var arrivalInput = InputBudget.Rate(burst: 128 * 1024, perSecond: 4 * 1024)
    /// A stream that left its channel goes on to its next key after so many records.
    package var recordsPerKeyMax = RecordCipher.recordsPerKeyMax
    /// Whether HTTP/2 is offered, where the context has it; a listener that does not speak it must not
    /// choose it.
    package var offersHTTP2 = true
    /// Where this listener counts.
    package var counters: TLSCounters
    /// Called on a thread that accepts connections with the CPU time, in nanoseconds, that one event
    /// of one connection took.
    package var onArrivalTurn: (@Sendable (_ nanoseconds: Int64) -> Void)?

    /// Settings with the defaults above, counting into `counters`.
    package init(counters: TLSCounters = TLSCounters()) {
        self.counters = counters
    }
}
