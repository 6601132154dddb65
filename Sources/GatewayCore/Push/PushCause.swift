/// The reason why a push is sent: why a stream did not suffice.
package enum PushCause: String, Sendable, CaseIterable {
    /// No stream for the changed kind was open when the change came, and none had ended just
    /// before.
    case noStream = "no-stream"
    /// A stream was open, but the client did not acknowledge the change in time.
    case notAcknowledged = "not-acknowledged"
    /// The stream ended before the client acknowledged the change.
    case streamEnded = "stream-ended"
    /// The client made no contact after the previous push, which it usually does.
    case repeated = "repeat"
    /// A person requested it.
    case manual
}

extension DeliveryAttempts {
    /// Returns the cause of a push that is sent to an address now.
    func cause(at id: UInt64) -> PushCause {
        if hasHeardAll(at: id) { return .repeated }
        if streams > 0 { return .notAcknowledged }
        // The grace period that a stream leaves when it ends.
        if graceUntil >= pendingSince { return .streamEnded }
        // Only a stream that is limited to some kinds can have carried it.
        return carried.isEmpty ? .noStream : .notAcknowledged
    }
}
