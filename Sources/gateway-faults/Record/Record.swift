/// Everything that a run asked of a gateway and everything that it answered, in order.
struct Record: Sendable {
    /// One entry, at a monotonic time in seconds.
    struct Entry: Sendable {
        let time: Double
        let event: Event
    }

    /// Something sent, received or done.
    enum Event: Sendable {
        /// A post that ended; the entry's time is that of the answer.
        case posted(PostAttempt)
        case catalog(sequence: UInt64)
        /// A registration was sent.
        case registering(client: String, number: Int, interests: Set<Interest>)
        /// A registration was answered, or failed.
        case registered(client: String, number: Int, outcome: RegistrationOutcome)
        case told(client: String, ReceivedNotification)
        /// A client was handed a cursor and went on to it.
        case watermark(client: String, sequence: UInt64)
        /// The log lost its end, or an older copy was put in its place: sequences start again from
        /// an earlier one, and every client is owed what it had not been told.
        case logLost
        /// From here on `all` needs no further reason.
        case allExpected
        /// From here on the log keeps so many entries: events of older ones are new when they are sent
        /// again.
        case logKeeps(entries: UInt64)
        /// A notification does not verify against the published keys.
        case unverifiable(client: String, reason: String)
        /// A promise that the row itself saw broken.
        case broken(String)
    }

    /// The entries, oldest first.
    var entries: [Entry] = []
}

/// One attempt to post a batch; a batch that is sent again keeps its number.
struct PostAttempt: Sendable {
    /// Names the batch; its events have ids made from it.
    let batch: Int
    /// The subject of each event, in order.
    let subjects: [Subject]
    /// The time at which the attempt began.
    let sent: Double
    let outcome: PostOutcome

    var name: String { "batch \(batch) of \(subjects.count)" }
}

enum PostOutcome: Sendable, Equatable {
    /// 202.
    case accepted(accepted: Int, duplicates: Int, sequence: UInt64)
    /// Another status: nothing was taken.
    case refused(status: Int)
    /// No whole answer: taken or not.
    case unknown
}

enum RegistrationOutcome: Sendable, Equatable {
    /// In force for every change after a sequence: 0 for one gateway, where it is in force at once,
    /// and the answer's cursor where other nodes follow. The client builds what is new in it after
    /// the answer.
    case inForce(from: UInt64)
    /// In force, and the client builds everything at this cursor.
    case builtAnew(sequence: UInt64)
    /// In force or not.
    case unknown
}

/// A notification as its receiver reads it.
struct ReceivedNotification: Sendable {
    /// `seq`.
    let sequence: UInt64
    let targets: [Target]
    /// The time at which the stream or poll that carried it was sent.
    let opened: Double

    /// One thing that a notification calls stale.
    enum Target: Hashable, Sendable {
        /// Everything of the client.
        case all
        case kind(WidgetKind)
        /// The widgets of a kind that show one subject.
        case interest(Interest)
        /// A kind that no client registered.
        case foreign(String)
    }
}
