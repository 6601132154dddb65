import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct TokenBucketTests {
    private let rate = TokenRate(count: 3, period: 1_000, burst: 5)

    @Test func `a burst is granted at once and no more`() {
        var bucket = TokenBucket(now: 0)
        for _ in 0..<5 { #expect(bucket.take(at: rate, now: 0) == .granted) }
        #expect(bucket.take(at: rate, now: 0) == .refused(retryAfter: 334))
        #expect(bucket.take(at: rate, now: 333) == .refused(retryAfter: 1))
        #expect(bucket.take(at: rate, now: 334) == .granted)
    }

    @Test func `the time named by a refusal is the first at which a token is there`() {
        var random = SplitMix64(seed: 7)
        for _ in 0..<2_000 {
            let rate = TokenRate(
                count: Int64(random.below(50) + 1), period: Int64(random.below(5_000) + 1),
                burst: Int64(random.below(20) + 1))
            var bucket = TokenBucket(now: 0)
            var now: Int64 = 0
            for _ in 0..<40 {
                now += Int64(random.below(100))
                let tokens = Int64(random.below(8))
                if case .refused(let wait) = bucket.take(tokens, at: rate, now: now) {
                    #expect(wait >= 1)
                    var early = bucket
                    #expect(early.take(at: rate, now: now + wait - 1) != .granted)
                    var due = bucket
                    #expect(due.take(at: rate, now: now + wait) == .granted)
                }
            }
        }
    }

    /// A rate of 7 tokens in 10 s is asked every millisecond for an hour, so rounding would show.
    @Test func `nothing is lost or gained however often it is asked`() {
        let rate = TokenRate(count: 7, period: 10_000, burst: 1)
        var bucket = TokenBucket(now: 0)
        var granted = 0
        for now in Int64(0)...3_600_000 where bucket.take(at: rate, now: now) == .granted {
            granted += 1
        }
        // A bucket of one token waits for whole milliseconds: it never grants more, and loses at
        // most 1 ms per token.
        #expect(granted <= 2_521)
        #expect(granted >= 2_519)
        let other = TokenRate(count: 7, period: 10_000, burst: 100)
        var large = TokenBucket(now: 0)
        granted = 0
        for now in Int64(0)...3_600_000 where large.take(at: other, now: now) == .granted {
            granted += 1
        }
        #expect(granted == 100 + 2_520)
    }

    @Test func `a cost above what is left is charged whole`() {
        var bucket = TokenBucket(now: 0)
        #expect(bucket.take(9, at: rate, now: 0) == .granted)
        #expect(bucket.remaining(at: rate, now: 0) == 0)
        // A debt of 4 tokens and one to be granted make 5 tokens, at 3 tokens a second.
        #expect(bucket.take(at: rate, now: 0) == .refused(retryAfter: 1_667))
        #expect(bucket.take(at: rate, now: 1_667) == .granted)
    }

    @Test func `a debt is at most one full bucket`() {
        var bucket = TokenBucket(now: 0)
        bucket.charge(.max, at: rate, now: 0)
        bucket.charge(.max, at: rate, now: 0)
        #expect(bucket.untilFull(at: rate, now: 0) == 3_334)
    }

    @Test func `extremes neither overflow nor refill twice`() {
        let rate = TokenRate(count: .max, period: .max, burst: .max)
        var bucket = TokenBucket(now: .min)
        #expect(bucket.take(.max, at: rate, now: .min) == .granted)
        #expect(bucket.take(at: rate, now: .max) == .granted)
        var other = TokenBucket(now: 1_000)
        for _ in 0..<5 { _ = other.take(at: self.rate, now: 1_000) }
        #expect(other.take(at: self.rate, now: 0) != .granted)
        #expect(other.take(at: self.rate, now: 1_333) != .granted)
        #expect(other.take(at: self.rate, now: 1_334) == .granted)
    }
}

@Suite struct BucketTableTests {
    private let rate = TokenRate(count: 1, period: 1_000, burst: 2)

    @Test func `each key has a bucket of its own`() {
        var table = BucketTable<String>(rate: rate, slotsMax: 10)
        #expect(table.take(from: "a", now: 0) == .granted)
        #expect(table.take(from: "a", now: 0) == .granted)
        #expect(table.take(from: "a", now: 0) == .refused(retryAfter: 1_000))
        #expect(table.take(from: "b", now: 0) == .granted)
        #expect(table.remaining(for: "b", now: 0) == 1)
        #expect(table.remaining(for: "never seen", now: 0) == 2)
    }

    @Test func `full buckets give their place away`() {
        var table = BucketTable<Int>(rate: rate, slotsMax: 1_000)
        for key in 0..<10_000 {
            #expect(table.take(from: key, now: Int64(key) * 1_000) == .granted)
        }
        #expect(table.count <= 2)
    }

    /// A caller may use as many keys as it likes: its empty bucket refills only at its rate.
    @Test func `a full table gives nobody a new bucket for his empty one`() {
        var table = BucketTable<Int>(rate: rate, slotsMax: 50)
        var granted = 0
        for _ in 0..<100 {
            for key in 0..<500 where table.take(from: key, now: 0) == .granted { granted += 1 }
        }
        #expect(table.count == 50)
        #expect(granted == 100)
        // These are all the tokens that 50 buckets have in 10 s, whichever keys get them.
        for second in Int64(1)...10 {
            for key in 0..<500 where table.take(from: key, now: second * 1_000) == .granted {
                granted += 1
            }
        }
        #expect(granted <= 100 + 50 * 10)
    }

    /// Compares it with an unbounded table: no key gets a token that it would not get there.
    @Test(arguments: 0..<30)
    func `a bounded table never grants more than an unbounded one`(seed: Int) {
        var random = SplitMix64(seed: UInt64(seed))
        let rate = TokenRate(
            count: Int64(random.below(5) + 1), period: 1_000, burst: Int64(random.below(6) + 1))
        let keys = random.pick([4, 40, 400])
        var table = BucketTable<Int>(rate: rate, slotsMax: random.pick([1, 8, 50]))
        var model: [Int: TokenBucket] = [:]
        var now: Int64 = 0
        for _ in 0..<5_000 {
            now += Int64(random.below(20))
            let key = random.below(keys)
            let tokens = Int64(random.below(3) + 1)
            let verdict = table.take(tokens, from: key, now: now)
            guard verdict == .granted else { continue }
            let expected = model[key, default: TokenBucket(now: now)].take(
                tokens, at: rate, now: now)
            #expect(expected == .granted)
        }
    }
}
