import Foundation
import GatewayDocuments
import WidgetModel

/// The numbers of events that were posted.
struct PostingFigures: Encodable {
    private(set) var accepted = 0
    private(set) var duplicates = 0
    private(set) var unmatched = 0
    var setAside = 0

    var isEmpty: Bool { accepted + duplicates + setAside == 0 }

    mutating func count(_ taken: ChangesTaken) {
        accepted += taken.accepted
        duplicates += taken.duplicates
        unmatched += taken.unmatched
    }

    mutating func add(_ other: Self) {
        accepted += other.accepted
        duplicates += other.duplicates
        unmatched += other.unmatched
        setAside += other.setAside
    }
}

/// The lines of a program that posts events until a signal asks for the end: at most one a minute,
/// and one about failures.
struct PostingReport {
    /// The numbers since the last line.
    var figures = PostingFigures()
    private let form: OutputForm
    let interruption = Interruption()
    private var reported: ContinuousClock.Instant?
    private var complained: ContinuousClock.Instant?
    private var complaints: Set<String> = []

    init(form: OutputForm) { self.form = form }

    var isInterrupted: Bool { interruption.hasCome }

    /// Waits, in parts: the end may be asked for meanwhile.
    func pause(_ duration: Duration) async {
        let end = ContinuousClock.now + duration
        while !isInterrupted, ContinuousClock.now < end {
            let next = min(end, ContinuousClock.now + .milliseconds(200))
            try? await Task.sleep(until: next, clock: .continuous)
        }
    }

    private static func isDue(after last: ContinuousClock.Instant?) -> Bool {
        last.map { ContinuousClock.now >= $0 + .seconds(60) } ?? true
    }

    /// Prints what is wrong with a table, once. After a thousand it prints no more: peers name them.
    mutating func complain(_ text: String) {
        if complaints.count < 1_000, complaints.insert(text).inserted {
            Terminal.complain("timelinectl: \(text)")
        }
    }

    mutating func fail(_ text: String) {
        guard Self.isDue(after: complained), !isInterrupted else { return }
        complained = .now
        Terminal.complain("timelinectl: \(text); it is tried again")
    }

    mutating func print(isLast: Bool = false) {
        guard !figures.isEmpty, isLast || Self.isDue(after: reported) else { return }
        let due = figures
        figures = PostingFigures()
        reported = .now
        Terminal.print((try? JSONValue(encoding: due)) ?? .null, as: form) {
            "\(Date().ISO8601Format())  accepted \(due.accepted), \(due.duplicates) duplicates, "
                + "\(due.unmatched) matched no rule, \(due.setAside) set aside"
        }
    }
}
