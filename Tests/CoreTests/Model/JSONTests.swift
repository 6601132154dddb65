import GatewayTestSupport
import Testing

@testable import WidgetModel

@Suite struct JSONTests {
    @Test(
        arguments: [
            ("null", JSONValue.null), (" true\n", true), ("false", false), ("0", 0), ("-0", 0),
            ("-12", -12), ("9223372036854775807", .integer(.max)),
            ("-9223372036854775808", .integer(.min)), ("9223372036854775808", .number(0x1p63)),
            ("1.5", .number(1.5)), ("1e2", .number(100)), ("1E+2", .number(100)),
            ("2e-1", .number(0.2)),
            ("\"\"", ""), (#""a\"\\\/\b\f\n\r\t""#, "a\"\\/\u{8}\u{c}\n\r\t"), (#""\u00e9""#, "é"),
            (#""\ud83d\ude00""#, "😀"), ("\"\u{7f}é😀\"", "\u{7f}é😀"), (#""\u0000""#, "\u{0}"),
            ("[]", []), ("[ 1 , 2 ]", [1, 2]), ("{}", [:]),
            (#"{"a":{"b":[null]}}"#, ["a": ["b": [nil]]]),
        ] as [(String, JSONValue)])
    func `a valid text is read`(text: String, value: JSONValue) throws {
        #expect(try JSONValue(parsing: text) == value)
    }

    @Test(arguments: [
        "", " ", "nul", "nulll", "True", "01", "-", "-a", "1.", ".5", "+1", "1e", "1e+", "0x1",
        "1 2",
        "NaN", "1e999", "[", "[1", "[1,", "[1,]", "[,1]", "]", "{", "{a:1}", "{\"a\"}", "{\"a\":}",
        "{\"a\":1,}", "{\"a\":1", "{\"a\" 1}", "{1:2}", "\"", "\"a", "\"\n\"", "\"\u{1}\"", #""\"#,
        #""\x""#, #""\u12""#, #""\u12g4""#, #""\ud800""#, #""\ud800\n""#, #""\ud800\ud800""#,
        #""\udc00""#, "'a'", "// c\n1", "\u{feff}1", "{\"a\":1,\"a\":2}", #"{"a":1,"\u0061":2}"#,
    ])
    func `an invalid text is refused`(text: String) {
        #expect(throws: JSONFault.self) { try JSONValue(parsing: text) }
    }

    @Test(arguments: [
        [0x22, 0xFF, 0x22], [0x22, 0xC0, 0x80, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22],
    ])
    func `a string that is not UTF-8 is refused`(bytes: [UInt8]) {
        #expect(throws: JSONFault.self) { try JSONValue(parsing: bytes) }
    }

    @Test func `nesting is bounded and the bound is reached`() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(throws: Never.self) { try JSONValue(parsing: nested(JSONValue.depthMax)) }
        #expect(throws: JSONFault.self) { try JSONValue(parsing: nested(JSONValue.depthMax + 1)) }
        #expect(throws: JSONFault.self) { try JSONValue(parsing: nested(100_000)) }
        let objects = String(repeating: "{\"a\":", count: 100_000)
        #expect(throws: JSONFault.self) { try JSONValue(parsing: objects) }
    }

    @Test func `a duplicate among many members is found`() {
        for count in [2, 15, 16, 17, 40] {
            let members = (0..<count).map { "\"m\($0)\":0" }
            for place in [0, count - 1] {
                let text = "{\((members + [members[place]]).joined(separator: ","))}"
                #expect(throws: JSONFault.self) { try JSONValue(parsing: text) }
            }
            #expect(throws: Never.self) {
                try JSONValue(parsing: "{\(members.joined(separator: ","))}")
            }
        }
    }

    @Test func `a fault tells where`() {
        do {
            _ = try JSONValue(parsing: "[1, x]")
        } catch {
            #expect(error.offset == 4)
            #expect(error.description.hasPrefix("byte 4: "))
        }
    }

    static func random(_ generator: inout SplitMix64, depth: Int) -> JSONValue {
        switch generator.below(depth > 0 ? 8 : 5) {
        case 0: return .null
        case 1: return .bool(generator.happens(50))
        case 2: return .integer(Int64(bitPattern: generator.next()) >> Int64(generator.below(64)))
        case 3:
            let number = Double(bitPattern: generator.next())
            return .number(number.isFinite && Int64(exactly: number) == nil ? number : 0.5)
        case 4, 5:
            let scalars = (0..<generator.below(6)).compactMap { _ in
                Unicode.Scalar(UInt32(generator.below(generator.pick([0x80, 0x800, 0x110000]))))
            }
            return .string(String(String.UnicodeScalarView(scalars)))
        case 6:
            return .array(
                (0..<generator.below(4)).map { _ in random(&generator, depth: depth - 1) })
        default:
            var object = JSONObject()
            for index in 0..<generator.below(4) {
                object["\(index)"] = random(&generator, depth: depth - 1)
            }
            return .object(object)
        }
    }

    @Test func `what is written reads back the same, indented or not`() throws {
        for seed in 0..<500 {
            var generator = SplitMix64(seed: UInt64(seed))
            let value = Self.random(&generator, depth: 5)
            #expect(try JSONValue(parsing: value.serialized) == value, "seed \(seed)")
            #expect(try JSONValue(parsing: value.indented()) == value, "seed \(seed)")
        }
    }

    @Test func `no mutation of a text traps, and what is still accepted reads back the same`()
        throws
    {
        var accepted = 0
        for seed in 0..<3_000 {
            var generator = SplitMix64(seed: UInt64(seed))
            var bytes = Self.random(&generator, depth: 4).serialized
            for _ in 0...generator.below(4) {
                let place = generator.below(bytes.count + 1)
                let byte = generator.pick(Array(#"{}[]":,\u0dc-+.eE19 "#.utf8) + [0, 0xFF, 0xC3])
                switch generator.below(4) {
                case 0: bytes.insert(byte, at: place)
                case 1: bytes = Array(bytes.prefix(place))
                case 2 where place < bytes.count: bytes[place] = byte
                default: bytes += bytes.suffix(place)
                }
            }
            guard let value = try? JSONValue(parsing: bytes) else { continue }
            accepted += 1
            #expect(try JSONValue(parsing: value.serialized) == value, "seed \(seed)")
        }
        #expect(accepted > 50 && accepted < 2_900)
    }

    @Test(arguments: [
        (#"{"a":1,"b":2}"#, #"{"b":3}"#, #"{"a":1,"b":3}"#),
        (#"{"a":1,"b":2}"#, #"{"a":null}"#, #"{"b":2}"#),
        (#"{"a":[1,2]}"#, #"{"a":[3]}"#, #"{"a":[3]}"#),
        (#"{"a":{"x":1,"y":2}}"#, #"{"a":{"y":null,"z":{"n":null}}}"#, #"{"a":{"x":1,"z":{}}}"#),
        (#"{"a":"text"}"#, #"{"a":{"b":{"c":null}}}"#, #"{"a":{"b":{}}}"#),
        (#"[1]"#, #"{"a":1}"#, #"{"a":1}"#), (#"{"a":1}"#, #"[2]"#, #"[2]"#),
        (#"{"a":1}"#, "null", "null"), (#"{"a":null}"#, #"{"b":1}"#, #"{"a":null,"b":1}"#),
        (#"{}"#, #"{"a":[null]}"#, #"{"a":[null]}"#),
    ])
    func `a merge patch replaces what it names and removes what it nulls`(
        target: String, patch: String, result: String
    ) throws {
        let merged = try JSONValue(parsing: target).merging(patch: JSONValue(parsing: patch))
        #expect(try merged == JSONValue(parsing: result))
    }
}
