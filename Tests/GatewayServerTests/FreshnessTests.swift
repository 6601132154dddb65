import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayServer

@Suite struct AcceptTimesTests {
    @Test func `a post's entries share its time, and what is not known is not guessed`() {
        let times = AcceptTimes()
        #expect(times.time(of: 1) == nil)
        times.note(5, through: 9, at: 100)
        times.note(11, through: 11, at: 200)
        for sequence in UInt64(5)...9 { #expect(times.time(of: sequence) == 100) }
        #expect(times.time(of: 11) == 200)
        #expect(times.time(of: 4) == nil && times.time(of: 12) == nil)
    }

    @Test(arguments: 0..<20)
    func `random posts agree with a dictionary of the latest ones`(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        let postsMax = random.pick([1, 2, 7, 1_000])
        let times = AcceptTimes(postsMax: postsMax)
        var posts: [(sequences: ClosedRange<UInt64>, at: Int64)] = []
        var next = UInt64(random.below(3) + 1)
        for step in 0..<300 {
            let last = next + UInt64(random.below(5))
            times.note(next, through: last, at: Int64(step))
            posts.append((next...last, Int64(step)))
            next = last + 1
            let asked = UInt64(random.below(Int(next) + 2))
            let known = posts.suffix(postsMax).first { $0.sequences.contains(asked) }
            #expect(times.time(of: asked) == known?.at, "step \(step)")
        }
    }
}
