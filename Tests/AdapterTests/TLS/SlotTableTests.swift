import Testing

@testable import GatewayTLS

/// Places, and the tokens of those who have them.
@Suite struct SlotTableTests {
    private final class Guest {}

    @Test func aTokenNamesOneOccupantOfAPlaceThatIsUsedAgain() {
        var table = SlotTable<Guest>()
        let (first, second, third) = (Guest(), Guest(), Guest())
        let tokens = [table.reserve(), table.reserve()]
        table[tokens[0]] = first
        table[tokens[1]] = second
        #expect(table.count == 2)
        #expect(table[tokens[0]] === first)
        #expect(table[tokens[1]] === second)
        table.remove(tokens[0])
        #expect(table[tokens[0]] == nil)
        #expect(table.count == 1)
        let next = table.reserve()
        table[next] = third
        #expect(UInt32(truncatingIfNeeded: next) == UInt32(truncatingIfNeeded: tokens[0]))
        #expect(next != tokens[0])
        #expect(next == table.token(at: UInt32(truncatingIfNeeded: next)))
        #expect(table[tokens[0]] == nil)
        #expect(table[next] === third)
        let occupants = table.occupants
        #expect(occupants.count == 2)
        #expect(occupants.first === third)
        #expect(occupants.last === second)
    }

    @Test func anOccupantLeavesOnce() {
        var table = SlotTable<Guest>()
        let token = table.reserve()
        table[token] = Guest()
        table.remove(token)
        table.remove(token)
        #expect(table.count == 0)
        let tokens = [table.reserve(), table.reserve()]
        #expect(Set(tokens.map { UInt32(truncatingIfNeeded: $0) }).count == 2)
    }
}
