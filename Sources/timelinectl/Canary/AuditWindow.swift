/// The deliveries of an auditor's changes in the last five minutes, and the shares in time.
///
/// A delivery is one change at one node. Time is handed in, from a clock that is never set back.
struct AuditWindow: Sendable {
    /// The time over which figures are formed.
    static let length = Duration.seconds(300)
    /// The limits within which a change is to be delivered.
    static let limits: [Duration] = [.seconds(1), .seconds(10), .seconds(60)]
    static let reliabilityLimit = 1
    /// The maximum number of changes kept; the oldest are dropped first.
    static let changesMax = 1_000
    /// The maximum number of notifications kept of a change whose sequence is not known yet.
    static let earlyMax = 64
    /// The maximum length of a reason, in characters.
    static let reasonLengthMax = 300

    private struct Early {
        let node: Int
        let sequence: UInt64
        let time: Duration
    }

    private struct Reason {
        let text: String
        let time: Duration

        init(_ text: String, at time: Duration) {
            self.text = String(text.prefix(reasonLengthMax))
            self.time = time
        }
    }

    private struct Change {
        let began: Duration
        var sent: Duration
        var sequence: UInt64?
        var delays: [Duration?]
        var isRefused: [Bool]
        var early: [Early] = []

        /// Whether a node delivered the change within `limit`; `nil` while it still can.
        func isInTime(at node: Int, limit: Duration, now: Duration) -> Bool? {
            if isRefused[node] { return false }
            if let delay = delays[node] { return delay <= limit }
            return now - sent > limit ? false : nil
        }
    }

    /// The names of the nodes, by index.
    let nodes: [String]
    private var changes: [Change] = []
    private var firstNumber = 0
    private var isConnected: [Bool]
    private var reasons: [Reason?]

    /// Creates a window without changes; no node is connected.
    init(nodes: [String]) {
        self.nodes = nodes
        isConnected = Array(repeating: false, count: nodes.count)
        reasons = Array(repeating: nil, count: nodes.count)
    }

    var count: Int { changes.count }

    // MARK: Events

    mutating func begin(at now: Duration) -> Int {
        drop(at: now, keeping: Self.changesMax - 1)
        changes.append(
            Change(
                began: now, sent: now, sequence: nil,
                delays: Array(repeating: nil, count: nodes.count),
                isRefused: Array(repeating: false, count: nodes.count)))
        return firstNumber + changes.count - 1
    }

    /// Records that a node accepted a change. Delays count from `sent`, when the accepted request
    /// was sent.
    mutating func accept(_ number: Int, sequence: UInt64, sent: Duration) {
        guard let index = index(of: number), changes[index].sequence == nil else { return }
        changes[index].sequence = sequence
        changes[index].sent = sent
        let early = changes[index].early
        changes[index].early = []
        for notification in early {
            notify(
                number, node: notification.node, sequence: notification.sequence,
                at: notification.time)
        }
    }

    /// Records that a node could not be reached, or rejected the registration or the change: it
    /// counts as not delivered there, even if another node accepts it.
    mutating func refuse(_ number: Int, node: Int, reason: String, at now: Duration) {
        reasons[node] = Reason(reason, at: now)
        guard let index = index(of: number) else { return }
        changes[index].isRefused[node] = true
    }

    /// Records a verified notification that concerns a change. One that arrives before the response
    /// to the change's post counts if its sequence turns out to include the change.
    mutating func notify(_ number: Int, node: Int, sequence: UInt64, at now: Duration) {
        guard let index = index(of: number), changes[index].delays[node] == nil else { return }
        guard let own = changes[index].sequence else {
            if changes[index].early.count < Self.earlyMax {
                changes[index].early.append(Early(node: node, sequence: sequence, time: now))
            }
            return
        }
        guard sequence >= own else { return }
        // A request that was repeated at another node may have been accepted at the first one.
        changes[index].delays[node] = max(.zero, now - changes[index].sent)
    }

    /// Records that a node's stream is open.
    mutating func connect(_ node: Int) {
        isConnected[node] = true
    }

    /// Records that a node's stream ended or cannot be opened.
    mutating func disconnect(_ node: Int, reason: String, at now: Duration) {
        isConnected[node] = false
        reasons[node] = Reason(reason, at: now)
    }

    /// Records a notification that did not verify, which delivers nothing.
    mutating func reject(_ node: Int, reason: String, at now: Duration) {
        reasons[node] = Reason(reason, at: now)
    }

    // MARK: Figures

    /// Whether a change may still be delivered within the limit of the reliability figure.
    func isPending(at now: Duration) -> Bool {
        changes.contains { change in
            now - change.began < Self.length
                && nodes.indices.contains {
                    change.isInTime(at: $0, limit: Self.limits[Self.reliabilityLimit], now: now)
                        == nil
                }
        }
    }

    /// Returns the figures of the last five minutes.
    mutating func report(at now: Duration) -> AuditReport {
        drop(at: now, keeping: Self.changesMax)
        let figures = nodes.indices.map { node in
            let shares = Self.limits.map { limit in
                var share = AuditShare()
                for change in changes {
                    guard let isInTime = change.isInTime(at: node, limit: limit, now: now) else {
                        continue
                    }
                    share.total += 1
                    if isInTime { share.inTime += 1 }
                }
                return share
            }
            let isFaultless = isConnected[node] && shares.allSatisfy { $0.inTime == $0.total }
            // A stream that cannot be opened for longer fails anew with every attempt.
            let reason = reasons[node].flatMap { now - $0.time < Self.length ? $0.text : nil }
            return AuditReport.Node(
                name: nodes[node], isConnected: isConnected[node], shares: shares,
                reason: isFaultless ? nil : reason)
        }
        return AuditReport(changes: changes.count, nodes: figures)
    }

    private func index(of number: Int) -> Int? {
        let index = number - firstNumber
        return changes.indices.contains(index) ? index : nil
    }

    /// Drops the changes that began five minutes ago or earlier, and the oldest beyond `count`.
    private mutating func drop(at now: Duration, keeping count: Int) {
        let old = changes.prefix { now - $0.began >= Self.length }.count
        let dropped = max(old, changes.count - count)
        guard dropped > 0 else { return }
        changes.removeFirst(dropped)
        firstNumber += dropped
    }
}
