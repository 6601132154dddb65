import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct VersionWindowTests {
    @Test func `a version is the latest sequence and never goes down`() {
        var window = VersionWindow(floor: 0, keysMax: 100)
        #expect(window.version(of: 7) == 0)
        window.raise(7, to: 3)
        window.raise(7, to: 5)
        window.raise(8, to: 6)
        #expect(window.version(of: 7) == 5)
        #expect(window.version(of: 8) == 6)
        #expect(window.count == 2)
    }

    @Test func `a raised floor forgets what lies at or below it and never goes back`() {
        var window = VersionWindow(floor: 0, keysMax: 100)
        for key in 1...20 { window.raise(UInt64(key), to: UInt64(key)) }
        window.raiseFloor(to: 12)
        window.raiseFloor(to: 3)
        #expect(window.floor == 12)
        #expect(window.count == 8)
        #expect(window.version(of: 12) == 0)
        #expect(window.version(of: 13) == 13)
    }

    @Test func `what does not fit is forgotten oldest first and the floor says so`() {
        var window = VersionWindow(floor: 0, keysMax: 16)
        for key in 1...17 { window.raise(UInt64(key), to: UInt64(key)) }
        #expect(window.floor == 5)
        #expect(window.count == 12)
        for key in 6...17 { #expect(window.version(of: UInt64(key)) == UInt64(key)) }
    }

    /// A change that bumped more keys than are remembered filled the table forever: the floor was
    /// at its sequence already, so no room was made, and the next search never ended.
    @Test func `one change may raise more keys than are remembered`() {
        var window = VersionWindow(floor: 0, keysMax: 16)
        for key in 1...1_000 { window.raise(UInt64(key), to: 4) }
        window.raise(5_000, to: 5)
        #expect(window.floor == 4)
        #expect(window.count <= 16)
        #expect(window.version(of: 5_000) == 5)
    }

    @Test func `against a dictionary, whatever is above the floor is exact`() {
        for seed in 0..<20 {
            var random = SplitMix64(seed: UInt64(seed))
            let keysMax = random.pick([16, 40, 100_000])
            var window = VersionWindow(floor: 0, keysMax: keysMax)
            var model: [UInt64: UInt64] = [:]
            for sequence in 1...1_500 {
                // Few low bits make long probe sequences.
                let key = UInt64(random.below(200)) << 32 | UInt64(random.below(4))
                window.raise(key, to: UInt64(sequence))
                model[key] = UInt64(sequence)
                #expect(window.count <= keysMax, "seed \(seed)")
            }
            for (key, version) in model {
                let known = window.version(of: key)
                #expect(known == (version > window.floor ? version : 0), "seed \(seed)")
            }
        }
    }
}
