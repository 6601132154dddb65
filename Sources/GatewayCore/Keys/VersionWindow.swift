/// The versions of keys: for each of a bounded number of keys, the sequence of the latest change
/// that bumped it.
///
/// At or below ``floor`` nothing is known, and everything counts as stale. Keys are stored as
/// 64-bit keyed hashes; a collision only leads to unnecessary reloads.
///
/// A window consists of sealed versions, which all windows of an app share, and of its own later
/// versions. A ``VersionCompactor`` seals them. A window keeps at most `keysMax` keys of its own;
/// beyond that it removes the oldest and raises the floor.
package struct VersionWindow: Sendable {
    /// The sequence up to which versions were removed.
    package private(set) var floor: UInt64
    /// The maximum number of stored keys.
    package let keysMax: Int

    private var sealed: SealedVersions?
    /// The window's own versions before ``current``, oldest first, each table with the highest
    /// sequence that it may contain. A table is dropped as a whole: adopting sealed versions must
    /// not visit keys.
    private var earlier: [(table: VersionTable, last: UInt64)] = []
    /// The latest versions.
    private var current = VersionTable()
    /// The number of keys in ``current`` at which another table begins.
    private var currentMax: Int

    /// The number of keys in a table of a window that adopts sealed versions in time. Otherwise
    /// each table is twice as large as the one before, so that there are few.
    private let tableKeys: Int
    /// The number of keys that are sealed together.
    package static let runKeysDefault = 8_192

    /// Creates a window that knows nothing up to `floor`.
    ///
    /// - Parameter runKeys: The number of keys that are sealed together.
    package init(
        floor: UInt64, keysMax: Int, runKeys: Int = VersionWindow.runKeysDefault
    ) {
        self.floor = floor
        self.keysMax = max(16, keysMax)
        tableKeys = max(1, runKeys)
        currentMax = min(tableKeys, self.keysMax)
    }

    /// The sequence up to which the versions are shared; 0 if none are.
    var sealedUpTo: UInt64 { sealed?.last ?? 0 }

    /// The number of stored keys; one that changed often may be counted more than once.
    package var count: Int { recentCount + (sealed?.count ?? 0) }

    private var recentCount: Int { earlier.reduce(current.count) { $0 + $1.table.count } }

    /// Returns the latest sequence that bumped `key`; 0 when none above the floor did.
    package func version(of key: UInt64) -> UInt64 {
        var version = current.version(of: key)
        var index = earlier.count
        // The newest table that knows the key has its latest version.
        while version == 0, index > 0 {
            index -= 1
            version = earlier[index].table.version(of: key)
        }
        if version == 0 { version = sealed?.version(of: key) ?? 0 }
        return version > floor ? version : 0
    }

    /// Prefetches the memory for raising `key`.
    @inline(__always)
    func prefetch(_ key: UInt64) { current.prefetch(key) }

    /// Records that the change at `sequence` bumped `key`. Sequences never decrease.
    package mutating func raise(_ key: UInt64, to sequence: UInt64) {
        if current.count >= currentMax { beginTable(at: sequence) }
        current.raise(key, to: sequence)
    }

    /// Begins the table of the versions from `sequence` on; makes room if the window is full.
    private mutating func beginTable(at sequence: UInt64) {
        let room = keysMax - recentCount
        guard room > 0 else { return makeRoom() }
        earlier.append((current, last: sequence))
        current = VersionTable(capacity: min(tableKeys << min(earlier.count, 16), room))
        limitCurrent()
    }

    private mutating func limitCurrent() {
        let room = keysMax - recentCount + current.count
        currentMax = min(max(tableKeys << min(earlier.count, 16), current.count + 1), room)
    }

    /// Makes one table of the window's own versions; removes the oldest of them if they are still
    /// too many when each key is counted once.
    private mutating func makeRoom() {
        var flat = VersionTable(capacity: recentCount)
        visitRecent { flat.raise($0, to: $1) }
        // Space must be freed even if that sequence equals the floor, as when one change bumps more
        // keys than fit.
        floor = max(floor, flat.sequence(below: keysMax - keysMax / 4 - 1))
        flat.removeAll(upTo: floor)
        (current, earlier) = (flat, [])
        // Shared versions above the floor may not lie in the window's own tables.
        if let last = sealed?.last, last <= floor { sealed = nil }
        limitCurrent()
    }

    private func visitRecent(_ body: (_ key: UInt64, _ sequence: UInt64) -> Void) {
        for (table, _) in earlier { table.visit(body) }
        current.visit(body)
    }

    /// Removes everything up to `sequence`, as after a gap in the log.
    package mutating func raiseFloor(to sequence: UInt64) {
        guard sequence > floor else { return }
        floor = sequence
        earlier.removeAll { $0.last <= sequence }
        for index in earlier.indices { earlier[index].table.removeAll(upTo: sequence) }
        current.removeAll(upTo: sequence)
        if let last = sealed?.last, last <= sequence { sealed = nil }
        limitCurrent()
    }

    /// Replaces the versions up to `versions.last` by these. The window must know everything up to
    /// there. Versions that end before those adopted earlier have no effect.
    ///
    /// Visits no key: some of the window's own versions remain beside the shared ones.
    mutating func adopt(_ versions: SealedVersions) {
        guard versions.last > max(floor, sealed?.last ?? 0) else { return }
        sealed = versions
        floor = max(floor, versions.floor)
        earlier.removeAll { $0.last <= versions.last }
        limitCurrent()
    }
}
