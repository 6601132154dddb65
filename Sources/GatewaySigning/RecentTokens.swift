/// A cache of verdicts on recently used tokens, by the digest of each token.
///
/// Memory is limited by two generations: when the younger one is full it becomes the older one, and
/// the previous older one is dropped with all tokens that were not used in the meantime.
struct RecentTokens<Value: Sendable>: Sendable {
    typealias Half = [SHA256Digest: Value]

    private var young = Half()
    private var old = Half()
    private let halfMax: Int

    /// Creates a cache of at most `entriesMax` tokens, and at least two.
    init(entriesMax: Int) {
        halfMax = max(1, entriesMax / 2)
    }

    /// The number of cached tokens.
    var count: Int { young.count + old.count }

    /// Returns the cached verdict on a token; `nil` if there is none.
    mutating func find(_ digest: SHA256Digest) -> Value? {
        if let value = young[digest] { return value }
        guard let value = old[digest] else { return nil }
        // A used entry moves to the younger generation; if that is full, the next insertion makes
        // space.
        if young.count < halfMax {
            young[digest] = value
            old[digest] = nil
        }
        return value
    }

    /// Caches the verdict on a token. Returns the evicted entries, which the caller frees outside
    /// its lock.
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

    /// Removes and returns all entries, which the caller frees outside its lock.
    mutating func removeAll() -> [Half] {
        defer { (young, old) = ([:], [:]) }
        return [young, old]
    }
}
