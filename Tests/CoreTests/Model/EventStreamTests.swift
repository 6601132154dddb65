import GatewayTestSupport
import Testing

@testable import WidgetModel

@Suite struct EventStreamTests {
    static func parse(_ text: String, cutAt cuts: [Int] = []) throws -> [ServerSentEvent] {
        var parser = EventStreamParser()
        let bytes = Array(text.utf8)
        var events: [ServerSentEvent] = []
        var start = 0
        for cut in cuts + [bytes.count] {
            events += try parser.parse(bytes[start..<cut])
            start = cut
        }
        return events
    }

    static let texts = [
        "id: 1\nevent: reload\ndata: a\n\n: c\n\nid: 2\n\ndata: b\ndata:c\n\nretry: 10\n\n",
        "\u{feff}id: 1\r\nevent: reload\r\ndata: é😀\r\n\r\nid\r\n\r\ndata\r\n\r\n",
        "id: 1\revent: reload\rdata: a\r\r\rdata: b\r\r",
        "unknown: x\ndata:  two\nid: a\u{0}b\nnocolon\n:comment\n\ndata: cut off",
        "event: only\n\nid: 3\n\nid: 3\n\ndata: x\n\n",
    ]

    @Test(arguments: texts)
    func `cut at any byte, a stream says the same as whole`(text: String) throws {
        let whole = try Self.parse(text)
        let count = text.utf8.count
        for cut in 0...count { #expect(try Self.parse(text, cutAt: [cut]) == whole) }
        #expect(try Self.parse(text, cutAt: Array(0...count)) == whole)
        for seed in 0..<50 {
            var random = SplitMix64(seed: UInt64(seed))
            let cuts = (0..<5).map { _ in random.below(count + 1) }.sorted()
            #expect(try Self.parse(text, cutAt: cuts) == whole, "seed \(seed)")
        }
    }

    @Test func `blocks are read as the standard has them`() throws {
        #expect(
            try Self.parse(Self.texts[0]) == [
                ServerSentEvent(id: "1", event: "reload", data: "a"), ServerSentEvent(id: "2"),
                ServerSentEvent(id: "2", event: "message", data: "b\nc"),
            ])
        #expect(
            try Self.parse(Self.texts[1]) == [
                ServerSentEvent(id: "1", event: "reload", data: "é😀"), ServerSentEvent(id: nil),
                ServerSentEvent(id: nil, event: "message", data: ""),
            ])
        #expect(
            try Self.parse(Self.texts[3]) == [
                ServerSentEvent(id: nil, event: "message", data: " two")
            ])
        #expect(
            try Self.parse(Self.texts[4]) == [
                ServerSentEvent(id: "3"), ServerSentEvent(id: "3", event: "message", data: "x"),
            ])
    }

    @Test func `what the encoder writes the parser reads`() throws {
        var parser = EventStreamParser()
        let bytes =
            EventStreamEncoder.retry(milliseconds: 2_000) + Array(":\n\n".utf8)
            + EventStreamEncoder.reload(id: "A", notification: Array("x.y.z".utf8))
            + EventStreamEncoder.reload(id: nil, notification: Array("u".utf8))
            + EventStreamEncoder.heartbeat(id: "B")
        #expect(
            try parser.parse(bytes) == [
                ServerSentEvent(id: "A", event: "reload", data: "x.y.z"),
                ServerSentEvent(id: "A", event: "reload", data: "u"), ServerSentEvent(id: "B"),
            ])
        #expect(parser.retry == 2_000)
        let more = try parser.parse(
            Array("retry: x1\nretry: -1\nretry\nretry: \(Int.max)0\n\n".utf8))
        #expect(more.isEmpty && parser.retry == 2_000)
    }

    @Test func `a line or an event longer than the limit ends the stream`() {
        for text in ["data: 0123456789", "data: 01\ndata: 23\ndata: 45\ndata: 6", ":0123456789"] {
            var parser = EventStreamParser(bytesMax: 9)
            #expect(throws: EventStreamParser.Failure.tooLong(limit: 9)) {
                _ = try parser.parse(Array((text + "\n").utf8))
            }
        }
        var endless = EventStreamParser(bytesMax: 9)
        #expect(throws: EventStreamParser.Failure.self) {
            for _ in 0..<100 { _ = try endless.parse(Array("data:\n".utf8)) }
        }
    }
}

@Suite struct CursorTests {
    @Test func `a cursor reads back from its text, which is fit for headers and URLs`() throws {
        for seed in 0..<300 {
            var random = SplitMix64(seed: UInt64(seed))
            let cursor = Cursor(
                epoch: EpochID(
                    ordinal: UInt32(truncatingIfNeeded: random.next()),
                    nonce: UInt32(truncatingIfNeeded: random.next())), sequence: random.next(),
                tag: random.next())
            #expect(cursor.text.utf8.count == Cursor.textBytes)
            #expect(Identifier.isValid(cursor.text))
            #expect(Cursor(text: cursor.text) == cursor)
            var changed = Array(cursor.text.utf8)
            changed[random.below(32)] ^= 1
            #expect(Cursor(text: String(decoding: changed, as: UTF8.self)) != cursor)
        }
        let lowest = Cursor(epoch: EpochID(ordinal: 0, nonce: 0), sequence: 0, tag: 0)
        #expect(lowest.text == String(repeating: "A", count: 32))
    }

    @Test(arguments: [
        "", "A", String(repeating: "A", count: 31), String(repeating: "A", count: 33),
        String(repeating: "A", count: 31) + "=", String(repeating: "A", count: 31) + "+",
        String(repeating: "A", count: 30) + "é", "*", String(repeating: "A", count: 1_000_000),
    ])
    func `any other text is no cursor`(text: String) {
        #expect(Cursor(text: text) == nil)
    }

    @Test func `cursors are ordered by epoch, then sequence`() {
        func cursor(_ ordinal: UInt32, _ sequence: UInt64, _ nonce: UInt32 = 0) -> Cursor {
            Cursor(
                epoch: EpochID(ordinal: ordinal, nonce: nonce), sequence: sequence, tag: sequence)
        }
        let ordered = [cursor(1, 0), cursor(1, 9), cursor(2, 1, 5), cursor(2, .max), cursor(3, 0)]
        #expect(ordered.reversed().sorted() == ordered)
        #expect(!(cursor(1, 5, 1) < cursor(1, 5, 2)))
    }
}

@Suite struct NotificationTests {
    static let notification = ReloadNotification(
        issuer: "https://gateway", audience: "com.mygame", issuedAt: 1, expires: 2, id: "j",
        sequence: 9,
        reload: [
            .init(
                kind: "k", parameters: [.init(name: "a", value: "1"), .init(name: "b", value: nil)]),
            .init(kind: "l"),
        ], recommendations: ["k"], relevance: ["r"], controls: ["c"],
        activities: [
            .init(type: "A", id: "7"),
            .init(
                type: "A",
                attributes: [.init(name: "a", value: "1"), .init(name: "b", value: nil)]),
            .init(type: "B"),
        ],
        cause: ChangeCause(time: "2026-11-21T09:30:00Z"))

    @Test func `claims read back the same and unknown ones are ignored`() throws {
        #expect(try ReloadNotification(Self.notification.json) == Self.notification)
        let more = Self.notification.json.merging(patch: ["future": ["x": 1]])
        #expect(try ReloadNotification(more) == Self.notification)
        let all = ReloadNotification(
            issuer: "i", audience: "a", issuedAt: 1, expires: 2, id: "j", sequence: 0, all: true)
        #expect(all.json.objectValue?["reload"] == nil)
        #expect(all.json.objectValue?["activities"] == nil)
        #expect(try ReloadNotification(all.json) == all)
    }

    @Test(
        arguments: [
            (["iss": nil], "iss"), (["aud": ["a"]], "aud"), (["iat": "1"], "iat"),
            (["exp": nil], "exp"), (["jti": 1], "jti"), (["seq": -1], "seq"), (["seq": "9"], "seq"),
            (["reload": 1], "reload"), (["reload": [["kind": 1]]], "reload[0].kind"),
            (["recommendations": [1]], "recommendations[0]"),
            (["activities": [["id": "7"]]], "activities[0].type"),
            (["activities": [["type": "A", "id": 7]]], "activities[0].id"),
        ] as [(JSONObject, String)])
    func `a claim that is missing or of a wrong type is told`(changes: JSONObject, place: String) {
        let value = Self.notification.json.merging(patch: .object(changes))
        do {
            _ = try ReloadNotification(value)
            Issue.record("\(place) was accepted")
        } catch {
            #expect(error.list.map(\.place) == [place])
        }
    }

    @Test func `a name concerns the widgets whose values equal or contain it`() {
        let reload = Self.notification.reload[0]
        func concerns(_ a: ParameterValue?, _ b: ParameterValue?, kind: String = "k") -> Bool {
            var values: [String: ParameterValue] = ["c": .single("1")]
            values["a"] = a
            values["b"] = b
            return reload.concerns(kind: kind, values: values)
        }
        #expect(concerns(.single("1"), nil) && concerns(.list(["2", "1"]), .unset))
        #expect(!concerns(.single("2"), nil) && !concerns(nil, nil) && !concerns(.unset, nil))
        #expect(!concerns(.single("1"), .single("1")) && !concerns(.single("1"), nil, kind: "l"))
        #expect(!concerns(.single("1"), .list([])))
        #expect(Self.notification.reload[1].concerns(kind: "l", values: ["a": .single("9")]))
        let letter = ReloadNotification.Reload(
            kind: "k", parameters: [.init(name: "a", value: "é")])
        #expect(!letter.concerns(kind: "k", values: ["a": .single("e\u{301}")]))
    }

    @Test func `a name concerns one activity, or those whose values equal or contain it`() {
        let (one, narrowed, whole) = (
            Self.notification.activities[0], Self.notification.activities[1],
            Self.notification.activities[2]
        )
        #expect(one.concerns(type: "A", id: "7", attributes: ["a": .single("2")]))
        #expect(!one.concerns(type: "A", id: "8", attributes: [:]))
        #expect(!one.concerns(type: "B", id: "7", attributes: [:]))
        #expect(narrowed.concerns(type: "A", id: "8", attributes: ["a": .list(["2", "1"])]))
        #expect(!narrowed.concerns(type: "A", id: "8", attributes: ["a": .single("2")]))
        #expect(
            !narrowed.concerns(
                type: "A", id: "8", attributes: ["a": .single("1"), "b": .single("1")]))
        #expect(whole.concerns(type: "B", id: "9", attributes: ["a": .single("2")]))
    }

    @Test func `a value that is not understood narrows nothing`() throws {
        let value = Self.notification.json.merging(
            patch: ["reload": [["kind": "k", "parameters": ["a": ["1"], "b": 2]]]])
        let reload = try ReloadNotification(value).reload
        #expect(reload == [.init(kind: "k", parameters: [.init(name: "b", value: "2")])])
    }
}
