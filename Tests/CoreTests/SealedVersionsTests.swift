import CatalogModel
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct SealedVersionsTests {
    /// A run with the given keys, each bumped at its sequence.
    private func run(_ versions: [UInt64: UInt64]) -> VersionTable {
        var table = VersionTable()
        for (key, sequence) in versions { table.raise(key, to: sequence) }
        return table
    }

    @Test func `beyond the maximum the oldest quarter is removed and the floor says so`() {
        var sealed = SealedVersions(app: "app", birth: 1, floor: 0)
        for first in stride(from: UInt64(1), to: 17, by: 4) {
            sealed.add(
                run(Dictionary(uniqueKeysWithValues: (first..<first + 4).map { ($0, $0) })),
                through: first + 3, keysMax: 12)
        }
        #expect(sealed.floor == 7)
        #expect(sealed.count == 9)
        for key: UInt64 in 1...16 { #expect(sealed.version(of: key) == (key > 7 ? key : 0)) }
    }

    @Test func `a copy keeps what it knew`() {
        var sealed = SealedVersions(app: "app", birth: 1, floor: 0)
        sealed.add(run([1: 1]), through: 1, keysMax: 16)
        let copy = sealed
        sealed.add(run([1: 2, 2: 2]), through: 2, keysMax: 16)
        sealed.raiseFloor(to: 9)
        #expect(copy.version(of: 1) == 1)
        #expect(copy.last == 1)
        #expect(sealed.version(of: 1) == 0)
        #expect(sealed.count == 0)
    }

    @Test
    func `against a dictionary, windows that adopt now and then are exact above their floors`() {
        for seed in 0..<80 {
            var random = SplitMix64(seed: UInt64(seed))
            let keysMax = random.pick([16, 200, 100_000])
            let runKeys = random.pick([1, 5, 60])
            let hotKeys = random.pick([3, 10, 400])
            var sealed = SealedVersions(app: "app", birth: 1, floor: 0)
            var recent = VersionTable()
            // The last window adopts nothing.
            var windows = [runKeys, 1, 8_192, runKeys].map {
                VersionWindow(floor: 0, keysMax: keysMax, runKeys: $0)
            }
            var model: [UInt64: UInt64] = [:]
            for sequence in UInt64(1)...1_500 {
                for _ in 0...random.below(2) {
                    let number = random.below(random.happens(95) ? hotKeys : 400)
                    let key = UInt64(number) << 32 | UInt64(random.below(4))
                    model[key] = sequence
                    recent.raise(key, to: sequence)
                    for index in windows.indices { windows[index].raise(key, to: sequence) }
                }
                if recent.count >= runKeys {
                    sealed.add(recent, through: sequence, keysMax: keysMax)
                    recent = VersionTable()
                    #expect(sealed.count <= keysMax, "seed \(seed)")
                }
                #expect(windows[3].count <= keysMax, "seed \(seed)")
                for index in 0..<3 where random.happens(3) { windows[index].adopt(sealed) }
            }
            for window in windows {
                for (key, version) in model {
                    let known = window.version(of: key)
                    #expect(known == (version > window.floor ? version : 0), "seed \(seed)")
                }
                if keysMax > 10_000 { #expect(window.floor == 0, "seed \(seed)") }
            }
        }
    }

    /// Keys that change again fill a window's own tables several times, and are few when counted
    /// once: then nothing is forgotten, and the floor says nothing of what is shared.
    @Test func `a window that is full of the same keys keeps what is shared`() {
        var window = VersionWindow(floor: 0, keysMax: 16, runKeys: 1)
        window.raise(100, to: 1)
        window.raise(1, to: 2)
        var sealed = SealedVersions(app: "app", birth: 1, floor: 0)
        sealed.add(run([100: 1, 1: 2]), through: 2, keysMax: 16)
        window.adopt(sealed)
        for sequence in UInt64(3)...200 { window.raise(1 + sequence % 8, to: sequence) }
        #expect(window.floor == 0)
        #expect(window.version(of: 100) == 1)
        for key: UInt64 in 1...8 { #expect(window.version(of: key) > 192) }
    }

    @Test func `older versions than a window has adopted change nothing`() {
        var window = VersionWindow(floor: 0, keysMax: 100)
        window.raise(1, to: 1)
        window.raise(2, to: 2)
        var sealed = SealedVersions(app: "app", birth: 1, floor: 0)
        sealed.add(run([1: 1]), through: 1, keysMax: 100)
        let older = sealed
        sealed.add(run([2: 2]), through: 2, keysMax: 100)
        window.adopt(sealed)
        window.adopt(older)
        #expect(window.version(of: 2) == 2)
        #expect(window.sealedUpTo == 2)
    }

    // MARK: The compactor

    private static func declared() throws -> Catalog {
        try catalog([kind([["entity": "E", "match": ["id": "$a"]]])])
    }

    /// A compactor that seals `runKeys` keys at a time and has applied the catalog of `gateway`.
    private func compactor(of gateway: SmallGateway, runKeys: Int) throws -> VersionCompactor {
        var limits = CoreLimits()
        limits.versionRunKeys = runKeys
        var compactor = VersionCompactor(floor: 0, limits: limits)
        let ruleSet = try #require(gateway.decider.ruleSets["app"])
        _ = compactor.apply(
            LogEntry(sequence: 1, app: "app", acceptedAt: 0, body: .catalog(ruleSet)))
        return compactor
    }

    @Test func `an app that came back adopts nothing of before`() throws {
        var gateway = SmallGateway(try Self.declared())
        var compactor = try compactor(of: gateway, runKeys: 1)
        gateway.head += 1
        let entry = LogEntry(
            sequence: gateway.head, app: "app", acceptedAt: 0, body: .reload(.everything))
        gateway.apply(entry.body)
        let made = compactor.apply(entry)
        let sealed = try #require(made)
        gateway.remove()
        gateway.put(try Self.declared())
        gateway.shard.adopt(sealed)
        #expect(gateway.shard.windows.map(\.keys) == [0])
    }

    @Test func `a shard adopts only versions of what it has applied`() throws {
        var gateway = SmallGateway(try Self.declared())
        var compactor = try compactor(of: gateway, runKeys: 1)
        let entry = LogEntry(
            sequence: gateway.head + 1, app: "app", acceptedAt: 0, body: .reload(.everything))
        let made = compactor.apply(entry)
        gateway.shard.adopt(try #require(made))
        #expect(gateway.shard.windows.map(\.keys) == [0])
    }
}
