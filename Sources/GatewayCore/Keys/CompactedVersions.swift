/// The versions of an app's keys as a ``VersionCompactor`` stores them: the tables that are sealed,
/// and the keys that were bumped since.
///
/// Later versions are sealed and removed at sequences that follow from the tables, so a node that
/// goes on from them keeps the same versions as the one that they are from. Merged into one table
/// they would be removed elsewhere.
package struct CompactedVersions: Sendable {
    /// The sequence of the app's first catalog.
    package let birth: UInt64
    /// The sequence up to which versions were removed.
    package let floor: UInt64
    /// The sequence up to which the versions are sealed.
    package let sealedThrough: UInt64
    /// The sealed tables, the oldest first, and at last the one of the keys that were bumped since.
    private var tables: [VersionTable]

    /// Creates versions whose keys follow by ``raise(_:to:inTable:)``.
    ///
    /// - Parameter tableCounts: The number of keys in each table; at least one table is made.
    package init(birth: UInt64, floor: UInt64, sealedThrough: UInt64, tableCounts: [Int]) {
        self.birth = birth
        self.floor = floor
        self.sealedThrough = sealedThrough
        let tables = tableCounts.map { $0 > 0 ? VersionTable(capacity: $0) : VersionTable() }
        self.tables = tables.isEmpty ? [VersionTable()] : tables
    }

    init(_ sealed: SealedVersions, recent: VersionTable) {
        birth = sealed.birth
        floor = sealed.floor
        sealedThrough = sealed.last
        tables = sealed.runs + [recent]
    }

    /// The number of keys in each table.
    package var tableCounts: [Int] { tables.map(\.count) }

    /// The number of stored keys; one that changed often may be counted once for each table.
    package var count: Int { tables.reduce(0) { $0 + $1.count } }

    /// Records that the change at `sequence` bumped `key`.
    ///
    /// - Parameter table: The index of the table. One that does not exist has no effect.
    package mutating func raise(_ key: UInt64, to sequence: UInt64, inTable table: Int) {
        guard tables.indices.contains(table) else { return }
        tables[table].raise(key, to: sequence)
    }

    /// Returns the next versions of a table, in no particular order, and the index to go on from;
    /// `nil` after the last one.
    ///
    /// - Parameter index: 0 at first.
    package func versions(
        inTable table: Int, from index: Int, atMost count: Int
    ) -> (versions: [VersionWindow.Version], next: Int?) {
        tables[table].versions(from: index, atMost: count)
    }

    /// The table of the keys that were bumped after ``sealedThrough``.
    var recent: VersionTable { tables.last ?? VersionTable() }

    /// Returns the sealed tables as those of an app.
    func sealed(of app: String) -> SealedVersions {
        SealedVersions(
            app: app, birth: birth, floor: floor, through: sealedThrough,
            runs: Array(tables.dropLast()))
    }

    /// A hash of the versions, equal on all nodes that have applied the same log up to the same
    /// sequence. The order in which a table stores its keys has no effect.
    package var digest: UInt64 {
        var digest = Self.mix(Self.mix(birth, floor), sealedThrough)
        for table in tables {
            var sum: UInt64 = 0
            table.visit { sum &+= Self.mix($0, $1) }
            digest = Self.mix(digest, sum)
        }
        return digest
    }

    /// Returns a hash of two numbers, computed as wyhash does. Keys are keyed hashes, so nobody can
    /// choose them to hide a difference.
    static func mix(_ one: UInt64, _ other: UInt64) -> UInt64 {
        let product = (one ^ 0xa076_1d64_78bd_642f).multipliedFullWidth(
            by: other ^ 0xe703_7ed1_a0b4_28db)
        return product.high ^ product.low
    }
}
