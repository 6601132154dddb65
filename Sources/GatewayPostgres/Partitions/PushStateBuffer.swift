import DequeModule

/// The push state that is not surely written yet: the newest row of each client.
///
/// A flush does not wait for the disk, so its rows are kept until a renewal of the lease, which does,
/// has followed it: what a crash of the server takes is written again. Otherwise a sequence that is
/// written as clear later would pass what was owed.
struct PushStateBuffer: Sendable {
    private var waiting: [Int32: [ClientName: PushStateRow]] = [:]
    /// The partitions with rows, in turn.
    private var turns: Deque<Int32> = []
    /// The rows on their way.
    private var sent: [Int32: [PushStateRow]] = [:]
    /// The rows that were written, in order: before and after the last renewal was sent.
    private var beforeRenewal: [Int32: [PushStateRow]] = [:]
    private var afterRenewal: [Int32: [PushStateRow]] = [:]

    /// Whether no rows wait.
    var isEmpty: Bool { waiting.isEmpty }

    /// Returns whether rows of a partition wait or are on their way.
    func hasRows(of part: Int32) -> Bool { waiting[part] != nil || sent[part] != nil }

    /// Returns whether rows of a partition wait.
    func hasWaitingRows(of part: Int32) -> Bool { waiting[part] != nil }

    /// Adds rows; one that was told less than a row that waits is dropped.
    mutating func note(_ rows: [PushStateRow], of part: Int32) {
        guard !rows.isEmpty else { return }
        if waiting[part] == nil { turns.append(part) }
        for row in rows {
            if let before = waiting[part]?[row.name], before.told > row.told { continue }
            waiting[part, default: [:]][row.name] = row
        }
    }

    /// Returns at most `countMax` rows with their partitions, until ``confirm()`` or ``restore()``.
    mutating func nextPortion(countMax: Int) -> [(part: Int32, row: PushStateRow)] {
        var portion: [(part: Int32, row: PushStateRow)] = []
        while portion.count < countMax, let part = turns.popFirst() {
            guard let rows = waiting.removeValue(forKey: part) else { continue }
            let taken = rows.values.prefix(countMax - portion.count)
            portion += taken.map { (part, $0) }
            sent[part] = Array(taken)
            guard taken.count < rows.count else { continue }
            var rest = rows
            for row in taken { rest[row.name] = nil }
            waiting[part] = rest
            turns.prepend(part)
        }
        return portion
    }

    /// The rows on their way were written.
    mutating func confirm() {
        afterRenewal.merge(sent, uniquingKeysWith: +)
        sent = [:]
    }

    /// A renewal is sent behind what was written so far.
    mutating func beginRenewal() {
        beforeRenewal.merge(afterRenewal, uniquingKeysWith: +)
        afterRenewal = [:]
    }

    /// The renewal is durable, and so is what was written before.
    mutating func endRenewal() { beforeRenewal = [:] }

    /// The rows on their way may not have been written: they wait again, unless newer ones do.
    mutating func restore() {
        for (part, rows) in sent { restore(rows, of: part) }
        sent = [:]
    }

    /// The server may have lost what it did not write to the disk: that waits again, unless newer
    /// rows do.
    mutating func restoreAll() {
        restore()
        for (part, rows) in afterRenewal { restore(rows, of: part) }
        for (part, rows) in beforeRenewal { restore(rows, of: part) }
        (beforeRenewal, afterRenewal) = ([:], [:])
    }

    /// Lets rows wait again that are older than those that wait.
    private mutating func restore(_ rows: [PushStateRow], of part: Int32) {
        let newer = waiting.removeValue(forKey: part)
        if newer == nil { turns.append(part) }
        waiting[part] = Dictionary(rows.map { ($0.name, $0) }) { $1 }.merging(newer ?? [:]) { $1 }
    }

    /// Forgets a partition.
    mutating func removeAll(of part: Int32) {
        if waiting.removeValue(forKey: part) != nil { turns.removeAll { $0 == part } }
        sent[part] = nil
        beforeRenewal[part] = nil
        afterRenewal[part] = nil
    }
}
