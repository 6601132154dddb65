import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct HealthTests {
    /// The state of a gateway without problems.
    private let well = Health.Snapshot(
        isServing: true, head: 10, loops: 10, pushes: 10, commits: 5, failedCommits: 0,
        isDiskRefusing: false, waitingWrites: 0, certificateEnds: 2_000)

    private func judge(_ looks: [(at: Int64, look: Health.Snapshot)]) -> Health.Verdict {
        var health = Health()
        var verdict = Health.Verdict()
        for (at, look) in looks { verdict = health.judge(look, now: at, wallSeconds: 1_000) }
        return verdict
    }

    /// The verdict on a look that stays the same for so many milliseconds.
    @Test func `each part fails by its own name, and kills slowly if a restart helps`() {
        let rows: [((inout Health.Snapshot) -> Void, Int64, Health.Verdict)] = [
            ({ _ in }, 100_000, .init()),
            ({ $0.isServing = false }, 0, .init(notReady: [.listener])),
            ({ $0.loops = 9 }, 4_999, .init()),
            ({ $0.loops = 9 }, 5_000, .init(notReady: [.eventLoops])),
            ({ $0.loops = 9 }, 59_999, .init(notReady: [.eventLoops])),
            ({ $0.loops = 9 }, 60_000, .init(notReady: [.eventLoops], stuck: [.eventLoops])),
            ({ $0.pushes = 3 }, 5_000, .init(notReady: [.pushes])),
            ({ $0.pushes = nil }, 5_000, .init()),
            // A writer that ends no transaction while writes wait.
            ({ $0.waitingWrites = 1 }, 60_000, .init(notReady: [.log], stuck: [.log])),
            ({ $0.certificateEnds = 1_000 }, 0, .init(notReady: [.certificate])),
            ({ $0.certificateEnds = 1_001 }, 0, .init()),
        ]
        for (place, (change, milliseconds, verdict)) in rows.enumerated() {
            var look = well
            change(&look)
            #expect(judge([(7, look), (7 + milliseconds, look)]) == verdict, "row \(place)")
        }
    }

    @Test func `whoever moves between two looks is not stuck, however far behind`() {
        var (first, second) = (well, well)
        (first.loops, first.pushes, first.head) = (1, 3, 1_000_000)
        (second.loops, second.pushes, second.head) = (2, 4, 2_000_000)
        #expect(judge([(0, first), (100_000, second)]) == Health.Verdict())
    }

    @Test func `a disk that refuses is not ready at once, and as long as it refuses`() {
        var refusing = well
        (refusing.failedCommits, refusing.isDiskRefusing) = (1, true)
        #expect(judge([(0, well), (1, refusing)]).notReady == [.log])
        #expect(judge([(0, well), (1, refusing), (90_000, refusing)]) == .init(notReady: [.log]))
        // Transactions that succeeded because they changed nothing do not count.
        var repeated = refusing
        repeated.commits = 6
        #expect(judge([(0, well), (1, refusing), (2, repeated)]).notReady == [.log])
        repeated.isDiskRefusing = false
        #expect(judge([(0, well), (1, refusing), (2, repeated)]) == Health.Verdict())
    }
}

struct DescriptorBudgetTests {
    private let needs = DescriptorBudget.Needs(
        threads: 2, operatorPorts: [64, 64], webhooks: 256, apnsApps: 1)

    @Test func enoughDescriptorsLeaveEverythingAsItIsWanted() throws {
        let budget = try #require(
            DescriptorBudget(limit: 524_288, connections: 100_000, needs: needs))
        #expect(budget.connections == 100_000)
        #expect(budget.operatorPorts == [64, 64])
        #expect(budget.webhooks == 256)
    }

    @Test func fewDescriptorsLowerConnectionsAndNeverTheReserve() throws {
        let budget = try #require(
            DescriptorBudget(limit: 1_024, connections: 100_000, needs: needs))
        #expect(budget.webhooks == 128)
        #expect(budget.reserve == 64 + 20 + 128 + 128 + 28)
        #expect(budget.connections == 1_024 - budget.reserve)
    }

    /// Whatever the numbers are, all parts together fit, and no part gets more than it wanted.
    @Test(arguments: 0..<10 as Range<UInt64>) func thePartsFitTheWhole(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<2_000 {
            let needs = DescriptorBudget.Needs(
                threads: .random(in: 1...64, using: &random),
                operatorPorts: (0..<Int.random(in: 0...3, using: &random)).map { _ in
                    .random(in: 1...256, using: &random)
                }, webhooks: .random(in: 0...256, using: &random),
                apnsApps: .random(in: 0...20, using: &random))
            let limit = Int.random(in: 0...5_000, using: &random)
            let wanted = Int.random(in: 1...5_000, using: &random)
            guard let budget = DescriptorBudget(limit: limit, connections: wanted, needs: needs)
            else {
                #expect(limit < 64 + 640 + 768 + 256 + 560 + 16)
                continue
            }
            #expect(budget.connections + budget.reserve <= limit)
            #expect(budget.connections >= min(wanted, DescriptorBudget.connectionsMin))
            #expect(budget.connections <= wanted && budget.webhooks <= needs.webhooks)
            #expect(zip(budget.operatorPorts, needs.operatorPorts).allSatisfy { $0 <= $1 })
            #expect(budget.reserve >= 64)
        }
    }

    @Test func tooFewAreRefused() {
        #expect(DescriptorBudget(limit: 100, connections: 100_000, needs: needs) == nil)
        #expect(DescriptorBudget(limit: 0, connections: 1, needs: needs) == nil)
    }
}

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

@Suite struct WriteHealthTests {
    private let quiet = WriteHealth.quietMilliseconds

    @Test func `the largest refusal decides, up to a limit`() {
        var health = WriteHealth()
        health.recordRefusal(bytes: 20_000, at: 0)
        health.recordRefusal(bytes: 10, at: 1)
        #expect(health.missingProofBytes == 20_000)
        health.recordRefusal(bytes: .max, at: 2)
        #expect(health.missingProofBytes == WriteHealth.proofBytesMax)
        // A new doubt demands no more proof than its own refusals.
        health.recordWrite(bytes: WriteHealth.proofBytesMax)
        #expect(health.missingProofBytes == nil)
        health.recordRefusal(bytes: 0, at: 2 + quiet)
        #expect(health.missingProofBytes == 1)
    }

    /// Compares it with a model that keeps every event: the disk counts as refusing until a proof
    /// was written after the last refusal and the quiet time is over. Events before the last change
    /// to "well" do not count.
    @Test(arguments: 0..<20) func `it agrees with a model that forgets nothing`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var health = WriteHealth()
        var now: Int64 = 0
        var events: [(refusedAt: Int64?, bytes: Int)] = []
        for _ in 0..<2_000 {
            now += Int64.random(in: 0...900, using: &random)
            func isRefusing() -> Bool {
                guard let last = events.lastIndex(where: { $0.refusedAt != nil }),
                    let refusedAt = events[last].refusedAt
                else { return false }
                let demanded =
                    events.filter { $0.refusedAt != nil }
                    .map { min(max($0.bytes, 1), WriteHealth.proofBytesMax) }.max() ?? 0
                let isProven = events[last...].dropFirst().contains {
                    $0.refusedAt == nil && $0.bytes >= demanded
                }
                return !isProven || now - refusedAt < WriteHealth.quietMilliseconds
            }
            if !isRefusing() { events = [] }
            #expect(health.isRefusing(at: now) == isRefusing())
            let bytes = [0, 100, 5_000, 70_000, 1 << 20].randomElement(using: &random) ?? 0
            if Int.random(in: 0..<4, using: &random) == 0 {
                health.recordRefusal(bytes: bytes, at: now)
                events.append((now, bytes))
            } else {
                health.recordWrite(bytes: bytes)
                events.append((nil, bytes))
            }
            #expect(health.isRefusing(at: now) == isRefusing())
        }
    }
}
