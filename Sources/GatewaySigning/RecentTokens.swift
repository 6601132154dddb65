/// A cache of verdicts on the tokens that were used last, by the digest of each token.
///
/// Memory is bounded by two halves: when the younger is full it becomes the older, and the older is
/// dropped with every token that was not used meanwhile.
struct RecentTokens<Value: Sendable>: Sendable {
    typealias Half = [SHA256Digest: Value]

    private var young = Half()
    private var old = Half()
    private let halfMax: Int

    /// Remembers at most `entriesMax` tokens, and no fewer than two.
    init(entriesMax: Int) {
        halfMax = max(1, entriesMax / 2)
    }

    /// The number of tokens remembered now.
    var count: Int { young.count + old.count }

    /// Returns what is remembered of a token.
    mutating func find(_ digest: SHA256Digest) -> Value? {
        if let value = young[digest] { return value }
        guard let value = old[digest] else { return nil }
        // Used, so it moves up; where there is no room the next one that is remembered makes some.
        if young.count < halfMax {
            young[digest] = value
            old[digest] = nil
        }
        return value
    }

    /// Remembers a token.
    ///
    /// - Returns: What is forgotten for it, for the caller to free outside its lock.
    mutating func remember(_ value: Value, as digest: SHA256Digest) -> Half? {
        var forgotten: Half?
        if young.count >= halfMax, young[digest] == nil {
            forgotten = old
            old = young
            young = [:]
        }
        old[digest] = nil
        young[digest] = value
        return forgotten
    }

    /// Forgets every token.
    ///
    /// - Returns: What was remembered, for the caller to free outside its lock.
    mutating func removeAll() -> [Half] {
        defer { (young, old) = ([:], [:]) }
        return [young, old]
    }
}
