import Testing

@testable import GatewayCore

@Suite struct PortionsTests {
    @Test func `a portion costs at most the budget, or is one element`() {
        #expect(
            [1, 2, 3, 9, 1, 5, 1].portions(costing: 6) { $0 }.map(Array.init)
                == [[1, 2, 3], [9], [1, 5], [1]])
        #expect([].portions(costing: 6) { $0 }.isEmpty)
        #expect([7].portions(costing: 6) { $0 }.map(Array.init) == [[7]])
        #expect([7, 7].portions(costing: 6) { $0 }.map(Array.init) == [[7], [7]])
    }
}
