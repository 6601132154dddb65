package enum WriteOutcome: Sendable, Equatable {
    /// The place of one change.
    package enum Place: Sendable, Equatable {
        /// It was appended with this sequence.
        case appended(Int64)
        /// The same event was appended before, with this sequence.
        case duplicate(Int64)
    }

    /// Every change is in the log and durable.
    case accepted([Place])
    /// Anything but changes is in the log, with this sequence, and durable. The revision is that of
    /// a registration, else 0.
    case written(sequence: Int64, revision: Int64)
    /// Nothing was written, because the changes with these indices have the key of another event
    /// with other data.
    case reused([Int])
    /// Nothing was written, because it was decided from something that is not in force any more:
    /// another revision of the row, another catalog, or an app that was removed since. Read again,
    /// decide again.
    case conflict
    /// Nothing was written; try again later.
    case refused(WriteRefusal)
    /// The outcome is unknown: it may be in the log. A repetition finds the changes that have a
    /// key, and the revision of a registration.
    case unknown
}

/// The reason why nothing was written, or read.
package enum WriteRefusal: Sendable, Equatable {
    /// The queue is full.
    case busy
    /// It is more than a batch may have.
    case tooLarge
    /// An app or a client has a name that the server cannot store.
    case invalidName
    /// The servers do not take writes.
    case unavailable
}
