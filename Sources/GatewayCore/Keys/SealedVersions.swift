/// The versions of an app's keys up to a sequence: immutable, so that all event loops share them.
///
/// They consist of runs, each with the keys that the changes of a range of sequences bumped last.
package struct SealedVersions: Sendable {
    package let app: String
    /// The sequence of the app's first catalog. An app that was removed and came back has another.
    let birth: UInt64
    /// The sequence up to which the versions are complete.
    package private(set) var last: UInt64
    /// The sequence up to which versions were removed.
    package private(set) var floor: UInt64
    /// The runs, the newest last. Each is smaller than the one before it by ``growth`` or more.
    private var runs: [VersionTable] = []

    /// The factor between the sizes of two runs. It bounds the number of runs, which a look-up
    /// visits, and how often a key is copied.
    private static let growth = 2

    /// Versions that know nothing up to `floor`, and of nothing after it.
    init(app: String, birth: UInt64, floor: UInt64) {
        self.app = app
        self.birth = birth
        self.floor = floor
        last = floor
    }

    /// The number of stored keys; one that changed often may be counted once for each run.
    package var count: Int { runs.reduce(0) { $0 + $1.count } }

    /// Returns the latest sequence up to ``last`` that bumped `key`; 0 for none above the floor.
    func version(of key: UInt64) -> UInt64 {
        // The first run that knows the key has its latest version.
        for index in runs.indices.reversed() {
            let version = runs[index].version(of: key)
            if version != 0 { return version > floor ? version : 0 }
        }
        return 0
    }

    /// Adds the keys that the changes after ``last`` bumped.
    ///
    /// - Parameters:
    ///   - sequence: The sequence of the last of these changes.
    ///   - keysMax: The maximum number of stored keys. When different keys use more than 15/16 of
    ///     it, the oldest are removed down to 3/4: with less room left, all keys would be copied
    ///     again and again.
    mutating func add(_ run: VersionTable, through sequence: UInt64, keysMax: Int) {
        last = sequence
        runs.append(run)
        while runs.count > 1, runs[runs.count - 2].count < Self.growth * runs[runs.count - 1].count
        {
            mergeNewest()
        }
        guard count > keysMax else { return }
        while runs.count > 1 { mergeNewest() }
        guard runs[0].count > keysMax - keysMax / 16 else { return }
        floor = max(floor, runs[0].sequence(below: keysMax - keysMax / 4))
        runs[0].removeAll(upTo: floor)
    }

    /// Removes everything up to `sequence`.
    mutating func raiseFloor(to sequence: UInt64) {
        guard sequence > floor else { return }
        floor = sequence
        if last <= sequence { (runs, last) = ([], sequence) }
    }

    /// Makes one run of the two newest ones.
    private mutating func mergeNewest() {
        guard let newer = runs.popLast(), let older = runs.popLast() else { return }
        var merged = VersionTable(capacity: older.count + newer.count)
        newer.visit { merged.raise($0, to: $1) }
        // A key of both keeps the higher version, which is the newer one's.
        older.visit { merged.raise($0, to: $1) }
        if merged.count * 4 < (older.count + newer.count) * 3 {
            var fitting = VersionTable(capacity: merged.count)
            merged.visit { fitting.raise($0, to: $1) }
            merged = fitting
        }
        runs.append(merged)
    }
}
