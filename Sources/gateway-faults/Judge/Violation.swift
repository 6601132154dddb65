/// A promise that was broken.
struct Violation: Sendable, Equatable, CustomStringConvertible {
    /// The promise.
    enum Kind: String, Sendable, CaseIterable {
        /// A client was handed a cursor without having been told of a change below it.
        case lost
        /// A client was told of something that it does not depend on.
        case stray
        /// A client was told of something that has not changed since its cursor.
        case needless
        /// An event answered 202 was new when it was sent again, or has another sequence.
        case falseAccepted = "false 202"
        /// A batch was taken in part.
        case splitBatch = "split batch"
        /// A sequence was given out twice.
        case doubledSequence = "doubled sequence"
        /// A client's cursor went back.
        case watermarkBack = "watermark going back"
        /// A notification does not verify.
        case unverifiable
        /// `all` without a reason.
        case unexplainedAll = "unexplained all"
        /// A promise of one row alone.
        case broken
    }

    let kind: Kind
    let text: String

    var description: String { "\(kind.rawValue): \(text)" }
}

/// The outcome of judging a record.
struct Verdict: Sendable {
    var violations: [Violation] = []
    /// Changes answered 202, each once.
    var changes = 0
    /// Posts that were refused, and posts without an answer.
    var refusedPosts = 0
    var unansweredPosts = 0
    var registrations = 0
    var notifications = 0
    var watermarks = 0
    /// Needless reloads that are no violation, because what the run does to the log excuses them.
    var excused = 0

    func count(of kind: Violation.Kind) -> Int { violations.count { $0.kind == kind } }
}
