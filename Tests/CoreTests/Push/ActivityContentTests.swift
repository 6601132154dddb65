import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct ActivityContentTests {
    static let answer: JSONObject = [
        "event": "update", "contentState": ["goals": 1, "share": .number(0.5)],
        "relevanceScore": 75,
        "staleDate": 1_800_000_060, "dismissalDate": 1_800_000_120, "alert": ["title": "Goal"],
        "version": 2,
    ]

    private static func read(
        _ change: (inout JSONObject) -> Void = { _ in }
    ) throws(ContentFailure) -> ActivityContent {
        var answer = answer
        change(&answer)
        return try ActivityContent(JSONValue.object(answer).serialized)
    }

    private static func failure(_ body: () throws(ContentFailure) -> Void) -> ContentFailure? {
        do throws(ContentFailure) {
            try body()
            return nil
        } catch {
            return error
        }
    }

    private static func text(_ payload: [UInt8]) -> String {
        String(decoding: payload, as: UTF8.self)
    }

    private static let kickOff: ActivityContent.Start = (
        type: "Match", attributes: ["home": "a"], alert: ["title": "Kick-off"], channel: nil
    )

    @Test func `a push says what the content says, and when the activity disappears at its end`()
        throws
    {
        #expect(
            Self.text(try Self.read().payload(at: 1_800_000_000))
                == #"{"aps":{"timestamp":1800000000,"event":"update","#
                + #""content-state":{"goals":1,"share":0.5},"stale-date":1800000060,"#
                + #""relevance-score":75,"alert":{"title":"Goal"}}}"#)
        let end = try Self.read { answer in
            answer["event"] = "end"
            for name in ["staleDate", "relevanceScore", "alert"] { answer[name] = JSONValue.null }
        }
        #expect(
            Self.text(try end.payload(at: 7))
                == #"{"aps":{"timestamp":7,"event":"end","content-state":{"goals":1,"share":0.5},"#
                + #""dismissal-date":1800000120}}"#)
        let least = try ActivityContent(Array(#"{"contentState":{},"event":"update"}"#.utf8))
        #expect(
            Self.text(try least.payload(at: 7))
                == #"{"aps":{"timestamp":7,"event":"update","content-state":{}}}"#)
    }

    @Test func `a start names the type and the attributes, and where updates come from`() throws {
        let content = try Self.read { answer in
            for name in ["staleDate", "relevanceScore", "alert"] { answer[name] = nil }
        }
        let start =
            #"{"aps":{"timestamp":7,"event":"start","content-state":{"goals":1,"share":0.5},"#
            + #""alert":{"title":"Kick-off"},"attributes-type":"Match","attributes":{"home":"a"},"#
        #expect(
            Self.text(try content.payload(at: 7, starting: Self.kickOff))
                == start + #""input-push-token":1}}"#)
        var listening = Self.kickOff
        listening.channel = "bWF0Y2g="
        #expect(
            Self.text(try content.payload(at: 7, starting: listening))
                == start + #""input-push-channel":"bWF0Y2g="}}"#)
        // The backend knows better what to say now.
        let alerting = try Self.read().payload(at: 7, starting: Self.kickOff)
        #expect(Self.text(alerting).contains(#""alert":{"title":"Goal"}"#))
    }

    @Test(
        arguments: [
            ("event", nil), ("event", "start"), ("event", 1), ("contentState", nil),
            ("contentState", .null), ("contentState", []), ("contentState", "1:0"),
            ("staleDate", "soon"), ("staleDate", 999_999_999), ("staleDate", 1_800_000_060_000),
            ("staleDate", .number(1_800_000_060.5)), ("dismissalDate", 0),
            ("dismissalDate", 100_000_000_000), ("relevanceScore", "high"), ("alert", "Goal"),
        ] as [(String, JSONValue?)])
    func `an answer of another form is none`(name: String, value: JSONValue?) {
        let failure = Self.failure { () throws(ContentFailure) in
            _ = try Self.read { $0[name] = value }
        }
        #expect(failure == .invalid)
    }

    @Test func `an answer has 4,096 bytes at most, and so has the payload`() throws {
        func content(_ count: Int) throws(ContentFailure) -> ActivityContent {
            let text = String(repeating: "a", count: count)
            let answer: JSONValue = ["event": "update", "contentState": ["text": .string(text)]]
            return try ActivityContent(answer.serialized)
        }
        let start = Self.kickOff
        for isStart in [false, true] {
            func payload(_ count: Int) throws(ContentFailure) -> [UInt8] {
                try content(count).payload(at: 1_800_000_000, starting: isStart ? start : nil)
            }
            let rest = try 4_096 - payload(0).count
            #expect(try payload(rest).count == 4_096)
            let failure = Self.failure { () throws(ContentFailure) in _ = try payload(rest + 1) }
            #expect(failure == .tooLarge)
        }
        let bytes = JSONValue.object(Self.answer).serialized
        let padding = Array(repeating: UInt8(ascii: " "), count: 4_096 - bytes.count)
        #expect(try ActivityContent(bytes + padding) == Self.read())
        let failure = Self.failure { () throws(ContentFailure) in
            _ = try ActivityContent(bytes + padding + [UInt8(ascii: " ")])
        }
        #expect(failure == .tooLarge)
    }
}
