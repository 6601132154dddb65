import GatewayCore

/// The state that a node builds from the log up to one position, without clients: who restores it
/// reads only what follows.
package struct NodeSnapshot: Sendable {
    /// The number of the format that this program writes, and the only one that it reads.
    package static let format: Int64 = 1
    /// The size of a piece, bytes. Only a single record that is larger makes a larger one.
    package static let pieceBytes = 1 << 20

    package struct App: Sendable {
        /// The app.
        package var name: String
        package var history: RuleSetHistory
        package var versions: CompactedVersions

        package init(name: String, history: RuleSetHistory, versions: CompactedVersions) {
            self.name = name
            self.history = history
            self.versions = versions
        }
    }

    /// The last batch that was applied.
    package var position: LogPosition
    /// The sequence up to which the node knows nothing.
    package var floor: Int64
    /// The tags of the newest batches.
    package var tags: BatchTags
    /// The sequences at which apps were removed; registrations from before are void.
    package var removals: [String: UInt64]
    /// The apps that have a catalog.
    package var apps: [App]

    package init(
        position: LogPosition, floor: Int64, tags: BatchTags = BatchTags(),
        removals: [String: UInt64] = [:], apps: [App] = []
    ) {
        self.position = position
        self.floor = floor
        self.tags = tags
        self.removals = removals
        self.apps = apps
    }
}

/// The first byte of a piece: the kind of the records that follow. Numbers are little-endian.
enum SnapshotPieceKind: UInt8 {
    /// Position, chain, floor, and the numbers of tags, removals and apps.
    case start = 1
    /// Last sequence and tag of batches, 12 bytes each.
    case tags = 2
    /// Name and sequence of removals.
    case removals = 3
    /// An app, to which all pieces up to the next app belong: its name, the sequences of its catalog
    /// and of its first one, the floor of its versions and the sequence through which they are
    /// sealed, and the numbers of kinds, rules, retired rules, tables and the keys of each table.
    case app = 4
    /// Name and sequence of kinds.
    case kinds = 5
    /// Content and sequence of rules.
    case rules = 6
    /// Content and sequence of retired rules.
    case retired = 7
    /// Key and version, 16 bytes each, those of one table after those of another.
    case versions = 8
}
