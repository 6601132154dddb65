import GatewayCore
import GatewayTestSupport
import WidgetModel

@testable import GatewayPostgres

extension NodeSnapshot {
    /// Returns a snapshot of random state.
    static func random(
        at position: LogPosition, keys: Int = 200, using random: inout SplitMix64
    ) -> NodeSnapshot {
        let last = UInt64(position.last)
        var snapshot = NodeSnapshot(position: position, floor: Int64(random.below(Int(last))))
        for sequence in stride(from: 1, through: position.last, by: 1 + random.below(4)) {
            snapshot.tags.append(
                LogPosition(
                    last: sequence, chain: UInt128(random.next()) << 64 | UInt128(random.next())))
        }
        for number in 0..<random.below(4) {
            snapshot.removals["gone \(number)"] = 1 + UInt64(random.below(Int(last)))
        }
        for number in 0..<random.below(5) {
            func sequence() -> UInt64 { 1 + UInt64(random.below(Int(last))) }
            func entries() -> [RuleSetHistory.Entry] {
                (0..<random.below(20)).map { _ in
                    let bytes = (0..<random.below(90)).map { _ in UInt8(random.below(256)) }
                    return RuleSetHistory.Entry(identity: bytes, since: sequence())
                }
            }
            var kinds: [String: UInt64] = [:]
            for kind in 0..<random.below(10) { kinds["kind \(kind)"] = sequence() }
            let versions = CompactedVersions(
                birth: sequence(), floor: sequence(), sealedThrough: sequence(),
                tables: (0..<random.below(4)).map { _ in
                    (0..<random.below(keys + 1)).map { _ in
                        .init(key: random.next(), sequence: sequence())
                    }
                })
            snapshot.apps.append(
                App(
                    name: "app \(number)",
                    history: RuleSetHistory(
                        sequence: sequence(), kinds: kinds, rules: entries(), retired: entries()),
                    versions: versions))
        }
        return snapshot
    }

    /// Everything in it, in one order.
    var content: Content {
        Content(
            position: position, floor: floor, tags: tags, removals: removals,
            names: apps.map(\.name), histories: apps.map(\.history),
            digests: apps.map(\.versions.digest), versions: apps.map(\.versions.sortedTables))
    }

    struct Content: Equatable {
        let position: LogPosition
        let floor: Int64
        let tags: BatchTags
        let removals: [String: UInt64]
        let names: [String]
        let histories: [RuleSetHistory]
        let digests: [UInt64]
        let versions: [[[VersionWindow.Version]]]
    }
}

extension CompactedVersions {
    init(
        birth: UInt64 = 1, floor: UInt64 = 0, sealedThrough: UInt64 = 0,
        tables: [[VersionWindow.Version]]
    ) {
        self.init(
            birth: birth, floor: floor, sealedThrough: sealedThrough,
            tableCounts: tables.map(\.count))
        for (index, table) in tables.enumerated() {
            for version in table { raise(version.key, to: version.sequence, inTable: index) }
        }
    }

    /// The versions of each table, by key.
    var sortedTables: [[VersionWindow.Version]] {
        tableCounts.indices.map {
            versions(inTable: $0, from: 0, atMost: .max).versions.sorted { $0.key < $1.key }
        }
    }
}

extension SnapshotEncoder {
    /// All pieces.
    static func pieces(of snapshot: NodeSnapshot, pieceBytes: Int) -> [[UInt8]] {
        var encoder = SnapshotEncoder(snapshot, pieceBytes: pieceBytes)
        var pieces: [[UInt8]] = []
        while let piece = encoder.next() { pieces.append(piece) }
        return pieces
    }
}
