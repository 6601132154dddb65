import Foundation
import Testing

@testable import GatewayFleet

/// The comparison of the version windows of nodes.
@Suite struct WindowDigestTests {
    private func digest(_ hash: UInt64, at position: UInt64 = 7, floor: UInt64 = 0) -> WindowDigest
    {
        WindowDigest(position: position, floor: floor, hash: hash)
    }

    @Test func `a digest comes back from a report as it was`() throws {
        let digest = digest(.max, at: 1 << 40, floor: 9)
        let report = try JSONEncoder().encode(digest)
        #expect(try JSONDecoder().decode(WindowDigest.self, from: report) == digest)
        #expect(
            WindowDigest(position: "\(UInt64(1) << 40)", floor: "9", hash: "ffffffffffffffff")
                == digest)
    }

    @Test func `a malformed report has no digest`() {
        for text in ["{}", "[]", #"{"windowPosition":1,"windowFloor":0,"windowHash":"x"}"#] {
            #expect(throws: DecodingError.self) {
                try JSONDecoder().decode(WindowDigest.self, from: Data(text.utf8))
            }
        }
        #expect(WindowDigest(position: nil, floor: "0", hash: "1") == nil)
        #expect(WindowDigest(position: "-1", floor: "0", hash: "1") == nil)
        #expect(WindowDigest(position: "1", floor: "0", hash: "11111111111111111") == nil)
    }

    @Test func `only nodes with equal positions and floors are compared`() {
        func pairs(_ digests: WindowDigest...) -> [[Int64]] {
            WindowDigest.differing(digests.enumerated().map { (Int64($0), $1) }).map {
                [$0.one, $0.other]
            }
        }
        #expect(pairs(digest(1), digest(1), digest(2, at: 8), digest(3, floor: 1)) == [])
        #expect(pairs(digest(1), digest(2), digest(1), digest(3)) == [[0, 1], [0, 3]])
    }
}
