import Testing

@testable import GatewayCore

@Suite struct VersionWindowTests {
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
}
