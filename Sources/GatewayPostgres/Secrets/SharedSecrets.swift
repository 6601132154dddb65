/// The secrets of the cluster as one node last read them, and which of them it may use at a time.
///
/// Times that the node measures are in milliseconds of a clock that goes on while the machine
/// sleeps. The server's time is reckoned from the last reading, never ahead of it.
package struct SharedSecrets: Sendable {
    /// A secret that is unwrapped.
    package struct Entry: Sendable {
        package let row: SecretRow
        package let secret: SecretBytes
    }

    /// The reason why a node is not ready.
    package enum Unreadiness: Sendable, Equatable, CustomStringConvertible {
        /// The table was not read for too long.
        case stale
        /// A kind has no secret that may be used.
        case missing(SecretKind)
        /// A secret cannot be opened.
        case unreadable(SecretError)

        package var description: String {
            switch self {
            case .stale: "the secrets of the cluster were not read for a minute"
            case .missing(let kind): "the cluster has no secret of the kind \(kind.rawValue) yet"
            case .unreadable(let error): error.description
            }
        }
    }

    private let kinds: [SecretKind]
    private let timing: SecretTiming
    /// By kind, the newest first.
    private var entries: [String: [Entry]] = [:]
    private var fault: SecretError?
    /// By kind, the first use of the newest secret that this node has used: a server's clock that is
    /// set back takes no secret out of use.
    private var usedNotBefore: [String: Int64] = [:]
    /// The time at which the last successful request was sent, and the server's time in its answer
    /// with the time at which that came.
    private var sentAt: Int64?
    private var serverTime: (seconds: Int64, receivedAt: Int64) = (0, 0)

    /// Creates an empty set.
    ///
    /// - Parameter kinds: The kinds that the node needs.
    package init(kinds: [SecretKind] = SecretKind.allCases, timing: SecretTiming) {
        self.kinds = kinds
        self.timing = timing
    }

    /// Replaces all secrets by those that were read; what is dropped is overwritten.
    ///
    /// - Parameters:
    ///   - serverTime: The server's time in the answer, in seconds since 1970.
    ///   - sentAt: The time at which the request was sent.
    ///   - unwrap: Opens a row; called for rows that are new or changed.
    package mutating func receive(
        _ rows: [SecretRow], serverTime: Int64, sentAt: Int64, receivedAt: Int64,
        unwrap: (SecretRow) throws(SecretError) -> SecretBytes
    ) {
        for kind in kinds {
            guard let used = current(kind, at: receivedAt)?.row.notBefore else { continue }
            usedNotBefore[kind.rawValue] = max(used, usedNotBefore[kind.rawValue] ?? .min)
        }
        var next: [String: [Entry]] = [:]
        var fault: SecretError?
        for row in rows.sorted(by: { $0.notBefore > $1.notBefore }) {
            guard let kind = SecretKind(rawValue: row.kind), kinds.contains(kind) else { continue }
            let known = entries[row.kind]?.first {
                $0.row.name == row.name && $0.row.wrapped == row.wrapped
            }
            do throws(SecretError) {
                let secret = if let known { known.secret } else { try unwrap(row) }
                next[row.kind, default: []].append(Entry(row: row, secret: secret))
            } catch {
                fault = fault ?? error
            }
        }
        entries = next
        self.fault = fault
        self.sentAt = sentAt
        self.serverTime = (serverTime, receivedAt)
    }

    /// Returns the secret to sign or seal with; `nil` if the node must not.
    ///
    /// A node that has not read the table for a minute uses no newer one. One that has not read it for
    /// so long that the secret may have ended uses none.
    package func current(_ kind: SecretKind, at now: Int64) -> Entry? {
        guard let time = frozenTime(at: now), let sentAt else { return nil }
        if let rule = timing.rule(of: kind),
            now - sentAt > (rule.lead + (rule.kept - 1) * rule.period) * 1_000
        {
            return nil
        }
        let begun = max(time, usedNotBefore[kind.rawValue] ?? .min)
        let entries = entries[kind.rawValue] ?? []
        if let entry = entries.first(where: { $0.row.notBefore <= begun }) {
            return entry.row.hasEnded(at: time) ? nil : entry
        }
        // The oldest has been in use, whatever the server's clock says now: it was the first one, or
        // those before it have ended.
        return fault == nil ? entries.last : nil
    }

    /// Returns all secrets to verify or open with, also those before their first use: the published
    /// ones.
    package func valid(_ kind: SecretKind, at now: Int64) -> [Entry] {
        guard let time = serverTime(at: now) else { return [] }
        return (entries[kind.rawValue] ?? []).filter { !$0.row.hasEnded(at: time) }
    }

    /// Returns why the node is not ready; `nil` if it is.
    package func unreadiness(at now: Int64) -> Unreadiness? {
        if let fault { return .unreadable(fault) }
        guard let sentAt, now - sentAt <= SecretTiming.silenceMax * 1_000 else { return .stale }
        return kinds.first { current($0, at: now) == nil }.map { .missing($0) }
    }

    /// The server's time: at most as late as it is.
    private func serverTime(at now: Int64) -> Int64? {
        guard sentAt != nil else { return nil }
        return serverTime.seconds + max(0, now - serverTime.receivedAt) / 1_000
    }

    /// The server's time, which stands still a minute after the last reading.
    private func frozenTime(at now: Int64) -> Int64? {
        sentAt.flatMap { serverTime(at: min(now, $0 + SecretTiming.silenceMax * 1_000)) }
    }
}

extension SecretRow {
    fileprivate func hasEnded(at time: Int64) -> Bool { notAfter.map { $0 <= time } ?? false }
}
