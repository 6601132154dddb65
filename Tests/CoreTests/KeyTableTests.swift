import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore

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
