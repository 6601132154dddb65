import GatewayTestSupport
import Logging
import Testing
import Tracing
import WidgetModel

@testable import GatewayTelemetry

/// Parsing of `traceparent` by the rules of W3C Trace Context Level 2, section 3.2.
@Suite struct TraceContextTests {
    static let trace = "0af7651916cd43dd8448eb211c80319c"
    static let span = "b7ad6b7169203331"
    static let good = "00-\(trace)-\(span)-01"

    @Test func `a traceparent is read, and written as it came`() throws {
        let context = try #require(TraceContext(traceparent: Self.good))
        #expect(context.traceID.hexadecimal == Self.trace)
        #expect(context.spanID.hexadecimal == Self.span)
        #expect(context.isSampled && !context.isRandom && context.isRemote)
        #expect(context.traceparent == Self.good)
        #expect(context.state == TraceState())
    }

    @Test(arguments: [
        ("00", false, false), ("01", true, false), ("02", false, true), ("03", true, true),
        ("fc", false, false), ("ff", true, true),
    ])
    func `of the flags two are known`(flags: String, sampled: Bool, random: Bool) throws {
        let context = try #require(
            TraceContext(traceparent: "00-\(Self.trace)-\(Self.span)-\(flags)"))
        #expect(context.isSampled == sampled && context.isRandom == random)
        #expect(context.traceparent.hasSuffix("-0\((sampled ? 1 : 0) + (random ? 2 : 0))"))
    }

    @Test(arguments: [
        "", "00", good + "-", good + "-00", good + "0", String(good.dropLast()), " " + good,
        good + " ", good.uppercased(), "ff-\(trace)-\(span)-01", "0f-\(trace)-\(span)-01x",
        "0g-\(trace)-\(span)-01", "00_\(trace)-\(span)-01", "00-\(trace)_\(span)-01",
        "00-\(trace)-\(span)_01", "00-\(trace)-\(span)-0g", "00-\(trace)-\(span)-1",
        "00-00000000000000000000000000000000-\(span)-01", "00-\(trace)-0000000000000000-01",
        "00-\(trace.dropLast())G-\(span)-01", "00-\(trace.dropLast())A-\(span)-01",
        "00-\(trace)-\(span.dropLast())é-01", "00-\(trace)-\(span)-é",
        "\(good), \(good)", "01-\(trace)-\(span)-01" + String(repeating: "-x", count: 101),
    ])
    func `what is no traceparent is none`(text: String) {
        #expect(TraceContext(traceparent: text) == nil)
    }

    @Test(arguments: ["01-\(trace)-\(span)-01", "cc-\(trace)-\(span)-01-what-the-future-brings"])
    func `a later version may say more, and is passed on as this one`(text: String) throws {
        #expect(try #require(TraceContext(traceparent: text)).traceparent == Self.good)
    }

    @Test func `nothing of a random text is a trap, and of a good one every digit counts`() {
        var random = SplitMix64(seed: 11)
        var good = 0
        for _ in 0..<20_000 {
            var bytes = Array(Self.good.utf8)
            for _ in 0..<Int.random(in: 0...2, using: &random) {
                bytes[Int.random(in: bytes.indices, using: &random)] = .random(
                    in: 0...127, using: &random)
            }
            if Bool.random(using: &random) {
                bytes.removeLast(Int.random(in: 0...2, using: &random))
            }
            let text = String(decoding: bytes, as: UTF8.self)
            guard let context = TraceContext(traceparent: text) else { continue }
            good += 1
            #expect(context.traceparent.dropFirst(2).prefix(51) == text.dropFirst(2).prefix(51))
        }
        #expect(good > 1_000)
    }
}

@Suite struct TraceStateTests {
    @Test(arguments: [
        ("", ""), ("a=1", "a=1"), ("a=1,b=2", "a=1,b=2"), (" a=1 ,\tb=2 ", "a=1,b=2"),
        (",a=1,,", "a=1"), ("tenant@sys=x y", "tenant@sys=x y"), ("0a_-*/@z=~", "0a_-*/@z=~"),
    ])
    func `a list is read, and blanks are left out`(field: String, kept: String) {
        #expect(TraceState(field)?.text == kept)
    }

    @Test(arguments: [
        "a", "=1", "a=", "A=1", "-a=1", "a=1=2", "a b=1", "a=1,a=2", "a=é", "é=1", "a=\u{1}",
    ])
    func `what is no list is none, and the traceparent holds`(field: String) {
        #expect(TraceState(field) == nil)
        let context = TraceContext(traceparent: TraceContextTests.good, tracestate: field)
        #expect(context?.state == TraceState())
    }

    @Test func `more than 32 members are none`() {
        let members = (0..<33).map { "k\($0)=v" }
        #expect(TraceState(members.dropLast().joined(separator: ",")) != nil)
        #expect(TraceState(members.joined(separator: ",")) == nil)
    }

    @Test func `of a text that is too long the longest members go first, and then the last`() {
        let long = "long=" + String(repeating: "x", count: 200)
        let short = (0..<9).map { "k\($0)=" + String(repeating: "y", count: 97) }
        #expect(
            TraceState(([long] + short.prefix(2)).joined(separator: ","))?.text
                == ([long] + short.prefix(2)).joined(separator: ","))
        let kept = TraceState(([long] + short).joined(separator: ","))?.text
        #expect(kept == short.prefix(5).joined(separator: ","))
        #expect(TraceState(String(repeating: ",", count: 9_000)) == nil)
    }
}

@Suite struct TraceSamplingTests {
    private func ids(_ count: Int) -> [TraceID] {
        var random = SplitMix64(seed: 5)
        return (0..<count).map { _ in .random(using: &random) }
    }

    @Test func `who began a trace decides on it`() throws {
        for flag in ["00", "01"] {
            let text = TraceContextTests.good.dropLast(2) + flag
            let parent = try #require(TraceContext(traceparent: String(text)))
            for share in [0, 1.0] {
                let sampling = TraceSampling(share: share)
                #expect(sampling.samples(parent.traceID, parent: parent) == (flag == "01"))
            }
        }
    }

    @Test(arguments: [
        (0.0, 0...0), (1.0, 4_000...4_000), (0.25, 850...1_150), (-3.0, 0...0),
        (7.0, 4_000...4_000), (Double.nan, 0...0),
    ])
    func `of those that begin here a share is recorded`(share: Double, count: ClosedRange<Int>) {
        let sampling = TraceSampling(share: share)
        #expect(count.contains(ids(4_000).count { sampling.samples($0, parent: nil) }))
    }

    @Test func `a larger share records all that a smaller one does`() {
        let (small, large) = (TraceSampling(share: 0.1), TraceSampling(share: 0.5))
        let recorded = ids(2_000).filter { small.samples($0, parent: nil) }
        #expect(!recorded.isEmpty)
        #expect(recorded.allSatisfy { large.samples($0, parent: nil) })
    }
}
