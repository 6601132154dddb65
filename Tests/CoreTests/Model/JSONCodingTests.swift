import GatewayTestSupport
import Testing

@testable import WidgetModel

/// Encoding documents to JSON trees, and decoding them again.
@Suite struct JSONCodingTests {
    struct Part: Codable, Equatable {
        var name: String
        var count: UInt64?
        var ratio: Double?
    }

    struct Document: Codable, Equatable {
        var zulu = true
        var alpha: Int64 = 9_007_199_254_740_993
        var parts: [Part] = []
        var numbers: [Double?] = []
        var map = JSONMap<Int>()
        var any: JSONValue = .null
        var optional: Part?
    }

    private func decoded(_ text: String) throws -> Document {
        try Document(decoding: JSONValue(parsing: Array(text.utf8)))
    }

    @Test func `members stand in the order of the declaration, and absent ones are not written`()
        throws
    {
        let document = Document(
            parts: [Part(name: "a", count: 1), Part(name: "b", ratio: 2)], numbers: [1, nil, 0.5],
            map: JSONMap([(name: "z", value: 1), (name: "b", value: 2)]), any: ["x": [1, "y"]])
        let text =
            #"{"zulu":true,"alpha":9007199254740993,"parts":[{"name":"a","count":1},"#
            + #"{"name":"b","ratio":2.0}],"numbers":[1.0,null,0.5],"map":{"z":1,"b":2},"#
            + #""any":{"x":[1,"y"]}}"#
        #expect(try JSONValue(encoding: document).text == text)
        #expect(try decoded(text) == document)
    }

    @Test func `an empty document is an empty object, and an empty list an empty array`() throws {
        struct Nothing: Codable { var part: Part? }
        #expect(try JSONValue(encoding: Nothing()).text == "{}")
        #expect(try JSONValue(encoding: [Part]()).text == "[]")
        #expect(try JSONValue(encoding: JSONMap<Part>()).text == "{}")
    }

    @Test func `integers are exact, and what does not fit is refused or clamped`() throws {
        for number in [Int64.min, -1, 0, 9_007_199_254_740_993, .max] {
            #expect(try JSONValue(encoding: [number]) == .array([.integer(number)]))
            #expect(try [Int64](decoding: .array([.integer(number)])) == [number])
        }
        #expect(try JSONValue(encoding: [UInt64.max]) == .array([.integer(.max)]))
        #expect(throws: Faults("[0]", "must be an integer from 0 to \(UInt64.max), not an integer"))
        {
            try [UInt64](decoding: [-1])
        }
        #expect(
            throws: Faults("[0]", "must be an integer from \(Int.min) to \(Int.max), not a number")
        ) {
            try [Int](decoding: .array([.number(1.5)]))
        }
        #expect(try [Double](decoding: .array([1, .number(1.5)])) == [1, 1.5])
        #expect(try JSONValue(encoding: [Double.nan]) == .array([.null]))
    }

    @Test func `members that the document has not are ignored, and null counts as absent`() throws {
        let part = try Part(decoding: ["news": [1], "name": "a", "count": nil])
        #expect(part == Part(name: "a"))
    }

    @Test(arguments: [
        (#"[]"#, "", "must be an object, not an array"),
        (#"{}"#, "zulu", "is required"),
        (#"{"zulu":1}"#, "zulu", "must be a boolean, not an integer"),
        (#"{"zulu":true,"alpha":1,"parts":[{"name":"a"},{}]}"#, "parts[1].name", "is required"),
        (
            #"{"zulu":true,"alpha":1,"parts":[{"name":"a","count":"2"}]}"#, "parts[0].count",
            "must be an integer from 0 to 18446744073709551615, not a string"
        ),
        (#"{"zulu":true,"alpha":1,"parts":{}}"#, "parts", "must be an array, not an object"),
        (
            #"{"zulu":true,"alpha":1,"parts":[],"numbers":[true]}"#, "numbers[0]",
            "must be a number, not a boolean"
        ),
        (
            #"{"zulu":true,"alpha":1,"parts":[],"numbers":[],"map":{"a":null}}"#, "map.a",
            "must be an integer from -9223372036854775808 to 9223372036854775807, not null"
        ),
    ])
    func `a fault names its path`(text: String, path: String, message: String) {
        #expect(throws: Faults(path, message)) { try decoded(text) }
    }

    @Test func `what is written is read as the same, whatever it is`() throws {
        var random = SplitMix64(seed: 7)
        for _ in 0..<500 {
            func text() -> String { String(random.next() % 1000, radix: 36) }
            func part() -> Part {
                Part(
                    name: text(), count: Bool.random(using: &random) ? random.next() >> 1 : nil,
                    ratio: Bool.random(using: &random) ? Double(random.next() % 1_000) / 7 : nil)
            }
            var document = Document(zulu: .random(using: &random))
            document.alpha = Int64(bitPattern: random.next())
            for _ in 0..<random.next() % 4 { document.parts.append(part()) }
            for index in 0..<random.next() % 4 {
                document.numbers.append(index % 2 == 0 ? nil : Double(index) / 3)
            }
            document.map = JSONMap(sorting: ["a" + text(): 1, "b" + text(): 2])
            document.any = ["x": [nil, true, .string(text())]]
            if Bool.random(using: &random) { document.optional = part() }
            let json = try JSONValue(encoding: document)
            #expect(try Document(decoding: json) == document)
            let read = try JSONValue(parsing: json.serialized)
            #expect(try Document(decoding: read) == document)
        }
    }
}
