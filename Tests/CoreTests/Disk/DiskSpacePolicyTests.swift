import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct DiskSpacePolicyTests {
    private let policy = DiskSpacePolicy(checkpointBytesMax: 64 << 20)
    private let megabyte: Int64 = 1 << 20

    @Test func `a roomy disk copies at the limit alone`() {
        for free in [nil, 100 << 30] as [Int64?] {
            #expect(!policy.isCheckpointDue(written: 64 * megabyte - 1, free: free))
            #expect(policy.isCheckpointDue(written: 64 * megabyte, free: free))
        }
    }

    @Test func `a small disk copies at a quarter of what is free, and not after every write`() {
        #expect(!policy.isCheckpointDue(written: 2 * megabyte - 1, free: 8 * megabyte))
        #expect(policy.isCheckpointDue(written: 2 * megabyte, free: 8 * megabyte))
        #expect(!policy.isCheckpointDue(written: megabyte / 4 - 1, free: 0))
        #expect(policy.isCheckpointDue(written: megabyte / 4, free: 0))
    }

    @Test func `sizes beyond all bounds are not admitted`() {
        #expect(policy.bytesNeeded(transaction: .max, uncopied: 1) == .max)
        #expect(policy.bytesNeeded(transaction: 0, uncopied: 0) == DiskSpacePolicy.reservedBytes)
    }

    /// A disk with a database file and its write-ahead log. Whatever is written, and whatever else
    /// fills the disk up to the reserve, the log can always be copied and a start finds its room.
    @Test(arguments: 0..<20) func `a store that goes by it can always start`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var free = Int64.random(in: 2...64, using: &random) << 20
        var (uncopied, written): (Int64, Int64) = (0, 0)
        var (accepted, refused) = (0, 0)
        for _ in 0..<5_000 {
            let estimate = Int64.random(in: 4_096...(256 << 10), using: &random)
            if free >= policy.bytesNeeded(transaction: estimate, uncopied: uncopied) {
                accepted += 1
                let size = Int64.random(in: 0...estimate, using: &random)
                // The pages are appended to the log, and may be in the database file already.
                free -= size
                uncopied += estimate
                written += estimate
            } else {
                refused += 1
            }
            // All pages may be new to the database file.
            #expect(free - uncopied >= DiskSpacePolicy.reservedBytes)
            if policy.isCheckpointDue(written: written, free: free) {
                // A reader may keep part of the log from being copied.
                let copied = Bool.random(using: &random) ? uncopied : uncopied / 2
                free -= Int64.random(in: 0...copied, using: &random)
                uncopied -= copied
                written = 0
            }
        }
        #expect(accepted > 0 && refused > 0)
    }
}
