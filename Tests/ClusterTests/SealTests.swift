import Foundation
import GatewayTestSupport
import Testing

@testable import GatewayCluster

@Suite struct SealTests {
    private static func key(_ byte: UInt8) -> [UInt8] { Array(repeating: byte, count: 32) }

    @Test func opensWhatItSealedForTheSameRowOnly() throws {
        let seal = try Seal(Self.key(1))
        for bytes in [[], [0], Array("payload".utf8), Array(repeating: 7, count: 100_000)] {
            var sealed = try seal.seal(bytes, for: "item 1")
            #expect(try seal.open(sealed, for: "item 1") == bytes)
            #expect(throws: Seal.Fault.notAuthentic(row: "item 2")) {
                try seal.open(sealed, for: "item 2")
            }
            sealed[sealed.count - 1] ^= 1
            #expect(throws: Seal.Fault.notAuthentic(row: "item 1")) {
                try seal.open(sealed, for: "item 1")
            }
        }
        for count in 0..<33 {
            #expect(throws: Seal.Fault.notAuthentic(row: "x")) {
                try seal.open(Array(repeating: 1, count: count), for: "x")
            }
        }
    }

    @Test func anOlderKeyStillOpens() throws {
        let old = try Seal(Self.key(1))
        let both = try Seal(Self.key(2) + Self.key(1))
        let sealed = try old.seal([1, 2, 3], for: "row")
        #expect(try both.open(sealed, for: "row") == [1, 2, 3])
        #expect(throws: Seal.Fault.notAuthentic(row: "row")) {
            try old.open(try both.seal([1], for: "row"), for: "row")
        }
    }

    @Test func readsAFileOfItsOwnerWithWholeKeys() throws {
        let path = try GatewayProcess.temporaryDirectory() + "/key"
        func write(_ bytes: [UInt8], mode: Int) throws {
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        }
        try write(Self.key(1) + Self.key(2), mode: 0o600)
        _ = try Seal(contentsOf: path)
        try write(Self.key(1), mode: 0o640)
        #expect(throws: Seal.Fault.self) { try Seal(contentsOf: path) }
        try write(Self.key(1) + [0], mode: 0o600)
        #expect(throws: Seal.Fault.self) { try Seal(contentsOf: path) }
        #expect(throws: Seal.Fault.self) { try Seal(contentsOf: path + "-missing") }
    }
}
