import Testing

@testable import gateway_bench

@Suite struct CallgrindProfileTests {
    @Test func countsInstructionsAndCalls() throws {
        let profile = try CallgrindProfile(parsing: Self.text)
        #expect(profile.instructions == ["/bin/gateway": 19, "/lib/libcrypto.so.3": 7])
        #expect(profile.calls == ["write": 2, "seal": 5, "operator'new": 1])
    }

    @Test func whatItDoesNotKnowIsRefused() {
        for text in ["", "events: Ir\ntotals: 0\n"] {
            #expect(throws: CallgrindFault.notCallgrind) { try CallgrindProfile(parsing: text) }
        }
        let lines = [
            "jump=3 0x10", "+3 4", "* 4", "3 4", "0x10", "0x10 4 5", "0x10 many", "0xyz 4",
            "events: Dr", "positions: line",
        ]
        for line in lines {
            #expect(throws: CallgrindFault.unreadable(line: line)) {
                try CallgrindProfile(parsing: Self.text + line + "\n")
            }
        }
    }

    @Test func aPartOfAProfileIsRefused() {
        let lines = Self.text.split(separator: "\n")
        #expect(throws: CallgrindFault.cut) {
            try CallgrindProfile(parsing: lines.dropLast().joined(separator: "\n"))
        }
        #expect(throws: CallgrindFault.sumDiffers(total: 26, sum: 23)) {
            try CallgrindProfile(parsing: lines.filter { $0 != "0x102 3" }.joined(separator: "\n"))
        }
    }

    /// A dump was made during the call with an excessive cost. The numbers of calls are wrong, as
    /// they are for functions that are also called from elsewhere.
    private static let text = """
        # callgrind format
        version: 1
        creator: callgrind-3.19.0
        cmd:  gateway serve
        desc: Trigger: dump
        positions: instr
        events: Ir
        summary: 26

        ob=/bin/gateway
        fl=???
        fn=write
        0x104 10
        0x102 3
        cob=/lib/libcrypto.so.3
        cfi=???
        cfn=seal
        calls=900 0x20
        0x102 500
        0x100 2
        cfn=operator'new
        calls=900 0x300
        0x100 18446744073676050202
        0x106 3

        fn=operator'new
        0x300 1

        ob=/lib/libcrypto.so.3
        fn=seal
        0x20 2
        cfn=seal'2
        calls=7 0x20
        0x1f 20
        0x21 2
        fn=seal'2
        0x20 3

        totals: 26

        """
}

@Suite struct UnitCostsTests {
    /// Callgrind's counts of `units` of some work, and of the rest.
    private struct Work {
        var own = 500
        var openSSL = 1_000
        var (ownAllocations, openSSLAllocations) = (0, 0)
        var sends = 1
        var allocator = "malloc"

        func profile(_ units: Int) throws -> CallgrindProfile {
            let total =
                (own + openSSL + sends + 2 * ownAllocations + openSSLAllocations) * units + 70_159
            return try CallgrindProfile(
                parsing: """
                    # callgrind format
                    ob=/tmp/timeline-gateway
                    fn=pump
                    0x10 \(own * units + 70_000)
                    ob=/usr/lib/libswiftCore.so
                    fn=swift_slowAlloc
                    0x20 \(ownAllocations * units + 60)
                    ob=/usr/lib/x86_64-linux-gnu/libssl.so.3
                    fn=SSL_write
                    0x30 \(openSSL * units)
                    ob=/usr/lib/x86_64-linux-gnu/libc.so.6
                    fn=send
                    0x40 \(sends * units)
                    fn=\(allocator)
                    0x50 \((ownAllocations + openSSLAllocations) * units + 90)
                    ob=???
                    fn=(below main)
                    0x60 9
                    totals: \(total)
                    """)
        }

        func costs() throws -> UnitCosts {
            try UnitCosts(profile(2_000), profile(6_000), units: 4_000)
        }
    }

    @Test func oneMoreCostsTheDifference() throws {
        var work = Work()
        (work.ownAllocations, work.openSSLAllocations) = (2, 4)
        let costs = try work.costs()
        #expect(costs.instructions == 1_509)
        #expect(costs.ownInstructions == 502)
        #expect(costs.allocations == 6)
        #expect(costs.ownAllocations == 2)
        #expect(costs.sends == 1)
    }

    @Test func whatIsNotSeenIsNoPass() throws {
        let empty = try CallgrindProfile(parsing: "# callgrind format\ntotals: 0\n")
        #expect(throws: BenchFailure.self) { try UnitCosts(empty, empty, units: 1) }
        let some = try Work().profile(2_000)
        #expect(throws: BenchFailure.self) { try UnitCosts(some, empty, units: 1) }
        #expect(throws: BenchFailure.self) { try UnitCosts(some, some, units: 1) }
        let more = try Work().profile(6_000)
        #expect(throws: BenchFailure.self) { try UnitCosts(some, more, units: 0) }
        var renamed = Work()
        renamed.allocator = "other_malloc"
        #expect(throws: BenchFailure.self) { try renamed.costs() }
    }

    @Test func everyFigureHasABarThatAnAllocationMoreMisses() throws {
        var work = Work()
        for allocations in 0...1 {
            work.ownAllocations = allocations
            var report = Report()
            report.add(try work.costs().deliverySamples)
            #expect(report.rows.allSatisfy { $0.bar != nil })
            let missed = report.rows.filter { $0.isMet == false }.map(\.name)
            #expect(missed.contains("own allocations per delivery") == (allocations > 0))
            #expect(report.missesBar == (allocations > 0))
        }
        var report = Report()
        report.add(try work.costs().decisionSamples)
        #expect(report.rows.allSatisfy { $0.bar != nil })
    }
}
