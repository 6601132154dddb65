import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct LogSamplerTests {
    @Test func `the first events of a window are logged, and its summary counts the others`() {
        var sampler = LogSampler<String>(perWindow: 2, window: 1_000)
        let logged = [0, 1, 2, 3, 999].map { sampler.admits("a", now: $0) }
        #expect(logged == [true, true, false, false, false])
        let summaries = [999, 1_000, 1_000].map { sampler.summaries(now: $0) }
        #expect(summaries == [[], [.init(subject: "a", suppressed: 3)], []])
        #expect(sampler.count == 0)
    }

    @Test func `a new window begins without a summary of the old one, too`() {
        var sampler = LogSampler<String>(perWindow: 1, window: 1_000)
        let logged = [0, 1, 1_000, 1_001].map { sampler.admits("a", now: $0) }
        #expect(logged == [true, false, true, false])
        let summaries = sampler.summaries(now: 2_000)
        #expect(summaries == [.init(subject: "a", suppressed: 2)])
    }

    @Test func `at the end nothing stays uncounted`() {
        var sampler = LogSampler<String>(perWindow: 1, window: 1_000, subjectsMax: 1)
        for subject in ["a", "a", "b", "c"] { _ = sampler.admits(subject, now: 0) }
        let summaries = [1, 1].map { sampler.summaries(now: $0, atEnd: true) }
        #expect(
            summaries == [
                [.init(subject: "a", suppressed: 1), .init(subject: nil, suppressed: 1)], [],
            ])
    }

    @Test func `subjects beyond the limit share one count until others expire`() {
        var sampler = LogSampler<Int>(perWindow: 1, window: 1_000, subjectsMax: 10)
        let logged = (0..<1_000).filter { sampler.admits($0, now: 0) }
        #expect(logged == Array(0...10))
        #expect(sampler.count == 10)
        let summaries = sampler.summaries(now: 1_000)
        #expect(summaries == [.init(subject: nil, suppressed: 989)])
        let later = sampler.admits(5_000, now: 1_000)
        #expect(later)
        #expect(sampler.count == 1)
    }

    /// Every event is either logged or contained in a summary, and no window of a subject has more
    /// than its share.
    @Test(arguments: 0..<20 as Range<UInt64>)
    func `no event is lost and no window exceeds its share`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let perWindow = 1 + Int(random.next() % 4)
        var sampler = LogSampler<UInt64>(perWindow: perWindow, window: 100)
        var now: Int64 = 0
        var events: [UInt64: Int] = [:]
        var accounted: [UInt64: Int] = [:]
        var times: [UInt64: [Int64]] = [:]
        for step in 0..<5_000 {
            now += Int64(random.next() % 20)
            let subject = random.next() % 5
            events[subject, default: 0] += 1
            if sampler.admits(subject, now: now) {
                accounted[subject, default: 0] += 1
                times[subject, default: []].append(now)
            }
            guard random.next() % 40 == 0 || step == 4_999 else { continue }
            for summary in sampler.summaries(now: now, atEnd: step == 4_999) {
                accounted[summary.subject ?? .max, default: 0] += summary.suppressed
            }
        }
        #expect(accounted == events)
        for times in times.values {
            // Windows begin with their first event, so any span of one window touches two.
            for (index, time) in times.enumerated() where index >= 2 * perWindow {
                #expect(time - times[index - 2 * perWindow] >= 100)
            }
        }
    }
}
