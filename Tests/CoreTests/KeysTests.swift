import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct BoundValuesTests {
    static let positions: [BoundValues.Position] = [
        .missing, .unset, .nothing, .value(""), .value("1"), .value("\u{0}"), .value("\u{1}\u{2}"),
        .value("é"), .value("e\u{301}"), .value(String(repeating: "x", count: 70_000)),
    ]

    @Test func `positions decode to what was encoded and no two keys share an encoding`() throws {
        let rule = try ruleSet([["entity": "E"]]).rules[0]
        var seen: [[UInt8]: [BoundValues.Position]] = [:]
        for first in Self.positions {
            for second in Self.positions {
                let key = BoundValues(rule: rule, positions: [first, second])
                #expect(key.positions == [first, second])
                #expect(key.isBroad == (first == .missing || second == .missing))
                #expect(seen.updateValue([first, second], forKey: key.bytes) == nil)
            }
        }
    }

    @Test func `two ways of writing one letter are two values`() {
        #expect(BoundValues.Position.value("é") != .value("e\u{301}"))
        #expect(Set<BoundValues.Position>([.value("é"), .value("e\u{301}")]).count == 2)
    }

    @Test func `a broad key agrees where it lacks the attribute and nowhere else`() throws {
        let rule = try ruleSet([["entity": "E"]]).rules[0]
        func key(_ positions: BoundValues.Position...) -> BoundValues {
            BoundValues(rule: rule, positions: positions)
        }
        #expect(key(.value("1"), .value("2")).agrees(withBroad: key(.missing, .value("2"))))
        #expect(!key(.value("1"), .value("3")).agrees(withBroad: key(.missing, .value("2"))))
        #expect(key(.unset, .value("2")).agrees(withBroad: key(.missing, .missing)))
        #expect(!key(.value("1"), .unset).agrees(withBroad: key(.missing, .value("2"))))
    }

    @Test func `keys of two rules differ`() throws {
        let rules = try ruleSet([["entity": "E"], ["entity": "F"]]).rules
        #expect(
            BoundValues(rule: rules[0], positions: []).hash
                != BoundValues(rule: rules[1], positions: []).hash)
    }
}

@Suite struct KeyTableTests {
    /// Returns a key with a chosen hash, so that keys collide in their low bits, in their high
    /// bits, or in all 64.
    static func key(_ text: String, hash: UInt64) -> BoundValues {
        BoundValues(bytes: Array(text.utf8), hash: hash)
    }

    @Test func `random additions and removals agree with a dictionary`() {
        for seed in 0..<40 {
            var random = SplitMix64(seed: UInt64(seed))
            var table = KeyTable<String>()
            var model: [String: Int] = [:]
            // Few hashes make long runs, which removals must close again.
            let hashes = random.pick([1, 3, 64, 1 << 20])
            func key(_ name: String) -> BoundValues {
                let sum = name.utf8.reduce(UInt64(seed)) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
                let hash = sum % UInt64(hashes)
                return Self.key(name, hash: seed % 2 == 0 ? hash : hash << 32)
            }
            for step in 0..<1_500 {
                let length = random.below(20)
                let name = String(repeating: "x", count: length) + "\(random.below(60))"
                if let number = model[name] {
                    #expect(table[number] == name)
                    table.remove(number, leaving: "")
                    model[name] = nil
                    #expect(table.find(key(name)) == nil, "seed \(seed) step \(step)")
                } else if random.happens(step < 1_000 ? 60 : 20) {
                    model[name] = table.add(key(name), name)
                }
                #expect(table.count == model.count)
                if step % 50 == 0 {
                    for (name, number) in model {
                        #expect(table.find(key(name)) == number, "seed \(seed) step \(step)")
                        #expect(Array(table.values(of: number)) == Array(name.utf8))
                    }
                    #expect(Set(table.numbers) == Set(model.values))
                }
            }
        }
    }

    @Test func `numbers and space of removed keys are used again`() throws {
        var table = KeyTable<Int>()
        _ = table.add(Self.key("stays", hash: 1), 0)
        for turn in 0..<10_000 {
            let number = table.add(Self.key("comes \(1_000 + turn % 900)", hash: 2), turn)
            #expect(number == 1)
            table.remove(number, leaving: 0)
        }
        let bytes = Mirror(reflecting: table).children.first { $0.label == "bytes" }
        let size = try #require((bytes?.value as? [UInt8])?.count)
        #expect(size == 8 + 16)
    }

    @Test func `a copy has a life of its own`() {
        var table = KeyTable<Int>()
        let number = table.add(Self.key("a", hash: 1), 1)
        var copy = table
        copy[number] = 2
        _ = copy.add(Self.key("b", hash: 2), 3)
        #expect(table[number] == 1 && table.count == 1)
        #expect(copy[number] == 2 && copy.count == 2)
    }
}

@Suite struct RaisedKeysTests {
    /// Returns the positions by definition: at each position every value of the change, then
    /// `unset`, with the first position varying slowest.
    static func positions(_ options: [[BoundValues.Position]]) -> [[BoundValues.Position]] {
        options.reduce([[]]) { heads, options in
            heads.flatMap { head in options.map { head + [$0] } }
        }
    }

    /// Lists of no, one or several values, of lengths around whole words, at one to three
    /// positions, with and without a default, bump the keys of the definition, in its order.
    @Test(arguments: 0..<60)
    func `a change raises every combination once and in order`(seed: Int) throws {
        var random = SplitMix64(seed: UInt64(seed))
        let hasDefault = random.happens(30)
        let attributes = Array(["id", "x", "y"].prefix(1 + random.below(3)))
        var match = JSONObject()
        for (name, source) in zip(attributes, ["$a", "$b", "$client.c"]) {
            match[name] = .string(source)
        }
        let rules = try ruleSet(
            [["entity": "E", "match": .object(match)], ["entity": "E"]],
            parameters: [
                hasDefault
                    ? ["name": "a", "type": "String", "default": "12345"]
                    : ["name": "a", "type": "String"],
                ["name": "b", "type": "String"],
            ])
        let bindings = rules.rules[0].bindings
        for _ in 0..<40 {
            func text() -> String { String("1234567890123".prefix(random.below(14))) }
            var change = Change(entity: "E", id: random.happens(80) ? text() : nil)
            for name in attributes.dropFirst() where random.happens(80) {
                change.attributes[name] = (0..<random.below(4)).map { _ in text() }
            }
            let options = bindings.map { binding -> [BoundValues.Position] in
                guard let values = change.values(of: binding.attribute) else { return [.missing] }
                return values.map { .value($0) }
                    + (binding.agreesUnset(with: values) ? [.unset] : [])
            }
            let decision = try rules.decide(change, limits: Limits())
            let expected =
                Self.positions(options).map {
                    BoundValues(rule: rules.rules[0], positions: $0)
                } + [BoundValues(rule: rules.rules[1], positions: [])]
            #expect(decision.keys.map(\.values) == expected, "\(change)")
            #expect(decision.keys.count == expected.count)
            #expect(decision.isBroad == options.contains([.missing]), "\(change)")
            decision.keys.visit { index, rule, isBroad, key in
                #expect(isBroad == key.values.isBroad)
                #expect(decision.keys[index].values == key.values)
                #expect(decision.keys[index].rule == rule)
            }
        }
    }
}

@Suite struct SipHashTests {
    /// The vectors that the authors of SipHash-2-4 publish for a 64-bit result, with the key 00 01
    /// … 0f, of the first n bytes of 00 01 02 …, as little-endian bytes.
    static let vectors: [(Int, UInt64)] = [
        (0, 0x726F_DB47_DD0E_0E31), (1, 0x74F8_39C5_93DC_67FD), (2, 0x0D6C_8009_D9A9_4F5A),
        (3, 0x8567_6696_D7FB_7E2D), (4, 0xCF27_94E0_2771_87B7), (5, 0x1876_5564_CD99_A68D),
        (6, 0xCBC9_466E_58FE_E3CE), (7, 0xAB02_00F5_8B01_D137), (8, 0x93F5_F579_9A93_2462),
        (15, 0xA129_CA61_49BE_45E5),
    ]

    @Test(arguments: vectors)
    func `the published vectors come out`(length: Int, expected: UInt64) {
        #expect(testHash((0..<length).map { UInt8($0) }) == expected)
    }

    @Test func `a secret is the key in little-endian order and short ones are filled up`() {
        let bytes: [UInt8] = [1, 2, 3]
        #expect(SipHash(secret: (0..<16).map { UInt8($0) })(bytes) == testHash(bytes))
        #expect(SipHash(secret: [9])(bytes) == SipHash(9, 0)(bytes))
        #expect(SipHash(secret: [])(bytes) == SipHash(0, 0)(bytes))
    }

    @Test func `words and texts hash as their bytes`() {
        #expect(testHash(0x0706_0504_0302_0100) == testHash((0..<8).map { UInt8($0) }))
        #expect(testHash("abc") == testHash(Array("abc".utf8)))
        #expect(testHash("abc") != SipHash(1, 1)("abc"))
    }
}

@Suite struct VersionWindowTests {
    @Test func `a raised floor forgets what lies at or below it and never goes back`() {
        var window = VersionWindow(floor: 0, keysMax: 100)
        for key in 1...20 { window.raise(UInt64(key), to: UInt64(key)) }
        window.raiseFloor(to: 12)
        window.raiseFloor(to: 3)
        #expect(window.floor == 12)
        #expect(window.count == 8)
        #expect(window.version(of: 12) == 0)
        #expect(window.version(of: 13) == 13)
    }

    @Test func `what does not fit is forgotten oldest first and the floor says so`() {
        var window = VersionWindow(floor: 0, keysMax: 16)
        for key in 1...17 { window.raise(UInt64(key), to: UInt64(key)) }
        #expect(window.floor == 5)
        #expect(window.count == 12)
        for key in 6...17 { #expect(window.version(of: UInt64(key)) == UInt64(key)) }
    }

    /// A change that bumped more keys than are remembered filled the table forever: the floor was
    /// at its sequence already, so no room was made, and the next search never ended.
    @Test func `one change may raise more keys than are remembered`() {
        var window = VersionWindow(floor: 0, keysMax: 16)
        for key in 1...1_000 { window.raise(UInt64(key), to: 4) }
        window.raise(5_000, to: 5)
        #expect(window.floor == 4)
        #expect(window.count <= 16)
        #expect(window.version(of: 5_000) == 5)
    }
}
