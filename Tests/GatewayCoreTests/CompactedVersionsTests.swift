import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

/// The versions that a node stores and another one goes on from.
@Suite struct CompactedVersionsTests {
    private let set: RuleSet

    init() throws {
        set = try ruleSet([["entity": "E", "match": ["id": "$a"]]], at: 1)
    }

    private func change(_ id: Int, at sequence: UInt64) throws -> LogEntry {
        let decision = try set.decide(Change(entity: "E", id: "\(id)"), limits: Limits())
        return LogEntry(
            sequence: sequence, app: "app", acceptedAt: 0, body: .change(decision, cause: nil))
    }

    /// Copies versions record by record, as through a snapshot.
    private func copy(
        _ versions: CompactedVersions, using random: inout SplitMix64
    ) -> CompactedVersions {
        var copy = CompactedVersions(
            birth: versions.birth, floor: versions.floor, sealedThrough: versions.sealedThrough,
            tableCounts: versions.tableCounts)
        for table in versions.tableCounts.indices {
            var records: [VersionWindow.Version] = []
            var index: Int? = 0
            while let from = index {
                let (next, end) = versions.versions(inTable: table, from: from, atMost: 7)
                #expect(next.count <= 7)
                records += next
                index = end
            }
            #expect(records.count == versions.tableCounts[table])
            for record in records.shuffled(using: &random) {
                copy.raise(record.key, to: record.sequence, inTable: table)
            }
        }
        return copy
    }

    @Test(arguments: 0..<40)
    func `who goes on from stored versions seals and removes as the one that lived on`(
        seed: Int
    ) throws {
        var random = SplitMix64(seed: UInt64(seed))
        var limits = CoreLimits()
        limits.versionKeysMax = random.pick([16, 60, 300])
        limits.versionRunKeys = random.pick([1, 4, 50])
        let ids = random.pick([limits.versionKeysMax / 2, limits.versionKeysMax * 2])
        var lived = VersionCompactor(floor: 0, limits: limits)
        var shard = Shard(floor: 0, limits: limits)
        let catalog = LogEntry(sequence: 1, app: "app", acceptedAt: 0, body: .catalog(set))
        _ = lived.apply(catalog)
        shard.apply(catalog, now: 0)
        var restored: VersionCompactor?
        var other: Shard?
        for sequence in UInt64(2)...2_000 {
            let entry = try change(random.below(ids), at: sequence)
            shard.apply(entry, now: 0)
            if let sealed = lived.apply(entry) { shard.adopt(sealed) }
            other?.apply(entry, now: 0)
            if let sealed = restored?.apply(entry) { other?.adopt(sealed) }
            if let restored { #expect(restored.digest == lived.digest, "\(sequence)") }
            if restored == nil || random.below(200) == 0 {
                let versions = copy(try #require(lived.versions(of: "app")), using: &random)
                var compactor = VersionCompactor(position: sequence, floor: 0, limits: limits)
                compactor.install(set, versions: versions)
                #expect(compactor.digest == lived.digest)
                restored = compactor
                var copy = Shard(position: sequence, floor: 0, limits: limits)
                copy.install(set, versions: versions)
                other = copy
            }
        }
        // Both shards have the versions above their floors.
        let windows = [shard, try #require(other)].map { $0.apps[0].versions }
        for id in 0..<ids {
            try change(id, at: 1).keys { key in
                let versions = windows.map { $0.version(of: key) }
                let floor = windows.map(\.floor).max() ?? 0
                #expect(versions[0] == versions[1] || versions.allSatisfy { $0 <= floor })
            }
        }
        #expect(windows[1].sealedUpTo > 0)
    }

    @Test func `another key, sequence, floor or app has another digest`() throws {
        func compactor(
            _ key: UInt64, _ sequence: UInt64, floor: UInt64 = 0, sealedThrough: UInt64 = 2
        ) -> VersionCompactor {
            var versions = CompactedVersions(
                birth: 1, floor: floor, sealedThrough: sealedThrough, tableCounts: [1, 1])
            versions.raise(key, to: sequence, inTable: 0)
            versions.raise(8, to: 9, inTable: 1)
            var compactor = VersionCompactor(position: 9, floor: 0, limits: CoreLimits())
            compactor.install(set, versions: versions)
            return compactor
        }
        let base = compactor(7, 2)
        #expect(base.digest == compactor(7, 2).digest)
        for other in [
            compactor(6, 2), compactor(7, 1), compactor(7, 2, floor: 1),
            compactor(7, 2, sealedThrough: 3),
            VersionCompactor(position: 9, floor: 0, limits: CoreLimits()),
        ] { #expect(other.digest != base.digest) }
        #expect(base.versions(of: "nobody") == nil)
    }

    @Test func `a copy stays as it was while the compactor goes on`() throws {
        var compactor = VersionCompactor(floor: 0)
        compactor.install(set)
        for sequence in UInt64(1)...20_000 {
            _ = compactor.apply(try change(Int(sequence), at: sequence))
        }
        let copy = try #require(compactor.versions(of: "app"))
        let (digest, count) = (copy.digest, copy.count)
        for sequence in UInt64(20_001)...40_000 {
            _ = compactor.apply(try change(Int(sequence), at: sequence))
        }
        #expect((copy.digest, copy.count) == (digest, count))
        // Each table has the key of all changes beside those of its own.
        #expect((20_000...20_010).contains(count))
        #expect(compactor.versions(of: "app")?.digest != digest)
    }
}

extension LogEntry {
    /// Calls `body` with the hashes of the keys that a change bumps.
    fileprivate func keys(_ body: (UInt64) -> Void) {
        guard case .change(let decision, _) = self.body else { return }
        decision.keys.visit { _, _, _, key in body(key.hash) }
    }
}
