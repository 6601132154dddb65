import GatewayDocuments
import TimelineRuntime
import WidgetModel

/// A change with the id under which it is posted, however often.
struct DatabaseEvent: Sendable, Equatable {
    /// The source of events of an outbox.
    static let outbox = "/timeline_outbox"
    /// The source of events of a change feed.
    static let feed = "/timeline_feed"

    var source = Self.outbox
    /// Unique among all databases of the source.
    let id: String
    /// In the form of RFC 3339.
    let time: String
    /// The event's `data` in JSON.
    let change: [UInt8]

    /// Returns a batch of CloudEvents in JSON.
    static func batch(_ events: [DatabaseEvent]) -> [UInt8] {
        var bytes = Array("[".utf8)
        for event in events {
            if bytes.count > 1 { bytes.append(UInt8(ascii: ",")) }
            bytes += Array(
                """
                {"specversion":"1.0","type":"\(CloudEvent.type)","source":"\(event.source)",\
                "id":\(JSONValue.string(event.id).text),"time":"\(event.time)","data":
                """.utf8)
            bytes += event.change
            bytes.append(UInt8(ascii: "}"))
        }
        bytes.append(UInt8(ascii: "]"))
        return bytes
    }
}

/// Decides what becomes of the events of a batch by the gateway's answer, and how many the next
/// batch has.
struct EventBatch {
    enum Decision: Equatable {
        /// Each event is accepted, or was before.
        case remove
        /// The gateway will never accept these events, by their index; the others are still to be
        /// posted.
        case setAside([Int: String])
        /// Post fewer events at once.
        case split
        /// Post the same events again, but not before this time has passed.
        case retry(after: Duration)
    }

    private static let sizeMax = Limits().postEventsMax

    /// The number of events to post at once.
    private(set) var size = sizeMax
    private var failures = 0

    /// - Parameter random: A number of 0...1, so that pollers do not all retry at once.
    mutating func decide(count: Int, failure: GatewayFailure?, random: Double) -> Decision {
        switch failure {
        case nil:
            (size, failures) = (min(size * 2, Self.sizeMax), 0)
            return .remove
        case .refused(let problem)? where Self.isFinal(problem):
            failures = 0
            let reasons = Self.reasons(of: problem, count: count)
            return reasons.isEmpty ? split(count) : .setAside(reasons)
        case .refused(let problem)? where problem.status == 413 && count > 1:
            // A proxy's limit of bodies.
            return split(count)
        case .refused?, .connection?, .unreadable?:
            failures += 1
            // Up to 64 s.
            var wait = Double(1 << min(failures - 1, 6)) * (1 + random) / 2
            if case .refused(let problem)? = failure, let seconds = problem.retryAfter {
                wait = max(wait, Double(seconds))
            }
            return .retry(after: .milliseconds(Int64(wait * 1_000)))
        }
    }

    private mutating func split(_ count: Int) -> Decision {
        size = max(1, count / 2)
        return .split
    }

    /// Whether the gateway itself refuses the content: a proxy's page of errors has no such code.
    private static func isFinal(_ problem: ProblemDetails) -> Bool {
        switch problem.status {
        case 400: problem.code == "malformed"
        case 413: problem.code == "too-large"
        case 422: ["invalid", "event-id-reused"].contains(problem.code)
        default: false
        }
    }

    /// Returns the reasons against the events that a problem names, such as `[3].data.entity`, or
    /// against the only one.
    private static func reasons(of problem: ProblemDetails, count: Int) -> [Int: String] {
        var reasons: [Int: String] = [:]
        for fault in problem.faults {
            guard fault.place.hasPrefix("["), let end = fault.place.firstIndex(of: "]"),
                let index = Int(fault.place[..<end].dropFirst()), (0..<count).contains(index),
                reasons[index] == nil
            else { continue }
            reasons[index] = "\(problem.code): \(fault)"
        }
        if reasons.isEmpty, count == 1 {
            let reason = problem.faults.first?.message ?? problem.detail ?? problem.title
            reasons[0] = "\(problem.code): \(reason)"
        }
        return reasons
    }
}

extension GatewayService {
    /// Posts events as one batch, of which the gateway accepts all or none. Gives up 3 s after the
    /// end is asked for.
    func post(
        _ events: [DatabaseEvent], until isOver: @escaping @Sendable () -> Bool
    ) async throws(GatewayFailure) -> ChangesTaken {
        let post = Task { () async -> Result<ChangesTaken, GatewayFailure> in
            do throws(GatewayFailure) {
                return .success(try await self.post(events))
            } catch {
                return .failure(error)
            }
        }
        let watch = Task {
            while !isOver() { try await Task.sleep(for: .milliseconds(200)) }
            try await Task.sleep(for: .seconds(3))
            post.cancel()
        }
        defer { watch.cancel() }
        return try await post.value.get()
    }

    private func post(_ events: [DatabaseEvent]) async throws(GatewayFailure) -> ChangesTaken {
        let answer = try await document(
            "POST", "\(base)/changes", body: DatabaseEvent.batch(events),
            contentType: "application/cloudevents-batch+json")
        let taken = try ChangesTaken(answer: answer.value)
        guard taken.accepted + taken.duplicates == events.count else {
            throw .unreadable("it does not count the \(events.count) events posted")
        }
        return taken
    }
}
