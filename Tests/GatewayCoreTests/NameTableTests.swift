import GatewayTestSupport
import Testing

@testable import GatewayCore

@Suite struct NameTableTests {
    @Test func `a name has the value it was given last`() {
        var table = NameTable<Int>()
        #expect(table["a"] == nil)
        table.set("a", 1)
        table.set("b", 2)
        table.set("a", 3)
        #expect(table["a"] == 3 && table["b"] == 2 && table["c"] == nil)
        #expect(table.count == 2)
    }

    /// As a dictionary has it: the table is no place where a text becomes another.
    @Test func `texts are the same as they are by equality, whatever their bytes`() {
        for (left, right) in [("é", "e\u{301}"), ("K", "\u{212A}"), ("a\u{37E}", "a;")] {
            #expect(left == right)
            for (name, other) in [(left, right), (right, left)] {
                var table = NameTable<Int>()
                table.set("x", 0)
                table.set(name, 1)
                #expect(table[other] == 1 && table[name] == 1)
                table.set(other, 2)
                #expect(table[other] == 2 && table[name] == 2 && table.count == 2)
            }
        }
    }

    @Test(arguments: 0..<20)
    func `random names agree with a dictionary`(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        var table = NameTable<Int>()
        var model: [String: Int] = [:]
        let parts = random.pick([
            ["a", "b", ""], ["Entity", "1", "2", "90", "kind-"], ["é", "e\u{301}", "e", "x"],
        ])
        for step in 0..<2_000 {
            let name = (0..<random.below(9)).map { _ in random.pick(parts) }.joined()
            if random.happens(30) {
                table.set(name, step)
                model[name] = step
            }
            #expect(table[name] == model[name], "\(name)")
        }
        for (name, value) in model { #expect(table[name] == value, "\(name)") }
        #expect(table.count == model.count)
    }
}
