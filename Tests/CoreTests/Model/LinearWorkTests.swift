import Testing

@testable import CatalogModel
@testable import WidgetModel

/// Work on documents grows linearly with their size.
@Suite struct LinearWorkTests {
    private static func object(_ names: Range<Int>) -> JSONObject {
        var object = JSONObject()
        for name in names { object["member\(name)"] = .integer(Int64(name)) }
        return object
    }

    @Test func `large objects look names up by their hash however they came to be`() throws {
        let count = JSONObject.indexedCountMin
        let built = Self.object(0..<count)
        #expect(built.isIndexed && !Self.object(0..<count - 1).isIndexed)
        let text = JSONValue.object(built).serialized
        let parsed = try #require(try JSONValue(parsing: text).objectValue)
        #expect(parsed.isIndexed && parsed == built && parsed.hashValue == built.hashValue)
        let yaml = try #require(
            try JSONValue(yaml: String(decoding: text, as: UTF8.self)).objectValue)
        #expect(yaml.isIndexed && yaml == built)
        let merged = JSONValue.object(Self.object(0..<1)).merging(patch: .object(built))
        #expect(merged.objectValue?.isIndexed == true)
        var shrunk = Self.object(0..<count + 1)
        shrunk["member3"] = nil
        #expect(shrunk.isIndexed && shrunk["member3"] == nil && shrunk["member16"] == 16)
        shrunk["member4"] = nil
        #expect(!shrunk.isIndexed && shrunk["member4"] == nil && shrunk["member16"] == 16)
    }

    @Test func `names are told apart by their bytes in large objects too`() throws {
        var object = Self.object(0..<JSONObject.indexedCountMin)
        object["\u{E9}"] = 1
        object["e\u{301}"] = 2
        #expect(object["\u{E9}"] == 1 && object["e\u{301}"] == 2)
        #expect(throws: JSONFault.self) {
            let members = (0..<40).map { "\"m\($0)\":1" }.joined(separator: ",")
            _ = try JSONValue(parsing: "{\(members),\"m7\":2}")
        }
    }

    @Test(arguments: 0..<40 as Range<UInt64>)
    func `a merge patch does what RFC 7396 says, member by member`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        func value(_ depth: Int) -> JSONValue {
            switch Int.random(in: 0..<5, using: &random) {
            case 0: return nil
            case 1 where depth < 3, 2 where depth < 3:
                var object = JSONObject()
                for _ in 0..<Int.random(in: 0..<30, using: &random) {
                    object["m\(Int.random(in: 0..<40, using: &random))"] = value(depth + 1)
                }
                return .object(object)
            case 3: return .string("text")
            default: return .integer(Int64.random(in: 0..<9, using: &random))
            }
        }
        /// Applies a patch by the pseudocode of RFC 7396 section 2.
        func naive(_ target: JSONValue?, _ patch: JSONValue) -> JSONValue {
            guard case .object(let changes) = patch else { return patch }
            var members = target?.objectValue?.members ?? []
            for change in changes.members {
                let place = members.firstIndex { $0.name == change.name }
                if change.value == .null {
                    if let place { members.remove(at: place) }
                } else if let place {
                    members[place].value = naive(members[place].value, change.value)
                } else {
                    members.append(.init(name: change.name, value: naive(nil, change.value)))
                }
            }
            return .object(JSONObject(uniqueMembers: members))
        }
        for _ in 0..<20 {
            let (target, patch) = (value(0), value(0))
            #expect(target.merging(patch: patch) == naive(target, patch))
        }
    }

    @Test func `aliases are looked at up to a bound and told apart at brackets and commas`() {
        func isSuspicious(_ text: String) -> Bool { YAMLGuard.isSuspicious(text) }
        let name = String(repeating: "n", count: 128)
        #expect(!isSuspicious("- &\(name) 1\n- [*\(name), *\(name)]"))
        #expect(isSuspicious("- &\(name)n 1\n- [*\(name)n]"))
        #expect(!isSuspicious("[*a,*b,*c]") && isSuspicious("{*a:1}") && isSuspicious("*a : 1"))
    }

    @Test func `faults beyond those kept cost neither text nor hint`() {
        var faults = Faults()
        var made = 0
        for _ in 0..<Faults.keptMax * 3 {
            func place() -> String {
                made += 1
                return "p"
            }
            faults.add(place(), "is wrong")
            faults.add(place(), "is unknown", hint: "avatr", among: ["avatar"])
        }
        #expect(made == Faults.keptMax && faults.list.count == Faults.keptMax)
        #expect(faults.count == Faults.keptMax * 6)
        #expect(faults.list[1].message == "is unknown; did you mean `avatar`?")
    }

    @Test func `hints for one document end with their budget`() {
        var search = NearestName(steps: 10_000)
        let candidates = (0..<500).map { "com.mygame.kind-\($0)-of-the-widget" }
        var searches = 0
        while search.stepsLeft > 0, searches < 1_000 {
            _ = search.search("com.mygame.kind-77-of-the-widge", among: candidates)
            searches += 1
        }
        #expect(search.stepsLeft <= 0 && search.stepsLeft > -200 && searches < 10)
        #expect(search.search("a", among: ["a"]) == nil)
    }

    @Test(arguments: 0..<60 as Range<UInt64>)
    func `the nearest name is that of the whole table`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        func name() -> String {
            String(
                (0..<Int.random(in: 1..<9, using: &random)).map { _ in
                    "abcA".randomElement(using: &random) ?? "a"
                })
        }
        /// Returns Levenshtein's distance by its definition.
        func distance(_ left: ArraySlice<UInt8>, _ right: ArraySlice<UInt8>) -> Int {
            guard let a = left.first, let b = right.first else {
                return left.count + right.count
            }
            if a == b { return distance(left.dropFirst(), right.dropFirst()) }
            return 1
                + min(
                    distance(left.dropFirst(), right), distance(left, right.dropFirst()),
                    distance(left.dropFirst(), right.dropFirst()))
        }
        let (text, candidates) = (name(), (0..<4).map { _ in name() })
        let distances = candidates.map {
            distance(Array(text.lowercased().utf8)[...], Array($0.lowercased().utf8)[...])
        }
        let nearest = zip(distances, candidates).min { $0 < $1 }
        let isNear = (nearest?.0 ?? .max) <= max(1, text.utf8.count / 3)
        #expect(text.nearest(of: candidates) == (isNear ? nearest?.1 : nil))
    }
}
