import Testing

@testable import GatewayCore

@Suite struct OwedSetsTests {
    @Test func `a set is owed until it was built at a cursor that covers the change`() {
        var sets = OwedSets()
        sets.register([(1, nil), (2, nil)], at: 10)
        #expect(sets.owed.isEmpty && sets.latest == 0)
        let changes = [
            sets.changed(1, at: 11), sets.changed(2, at: 12), sets.changed(3, at: 13),
            sets.changed(1, at: 9),
        ]
        #expect(changes == [true, true, false, true])
        #expect(sets.owed == [1, 2] && sets.latest == 12)
        let paid = [
            sets.confirmed(2, builtAt: 12), sets.confirmed(1, builtAt: 10),
            sets.confirmed(3, builtAt: 99), sets.confirmed(1, builtAt: 11),
        ]
        #expect(paid == [false, false, false, true])
        #expect(sets.owed.isEmpty && sets.latest == 0)
    }

    @Test func `registering again pays only for what says when it was built`() {
        var sets = OwedSets()
        sets.register([(1, nil), (2, nil)], at: 10)
        _ = sets.changed(1, at: 11)
        _ = sets.changed(2, at: 12)
        sets.register([(2, 12), (1, nil), (3, 5), (4, nil)], at: 20)
        #expect(sets.owed == [1])
        let isOwed = [sets.changed(3, at: 6), sets.changed(4, at: 19)]
        #expect(isOwed == [true, false])
        // What is not offered any more is not owed.
        sets.register([], at: 21)
        #expect(sets.owed.isEmpty && sets.latest == 0)
    }

    @Test func `they survive being persisted`() {
        var sets = OwedSets()
        sets.register([(1, nil)], at: 10)
        _ = sets.changed(1, at: 11)
        let entries = sets.entries.map {
            OwedSets.Entry(kind: $0.kind, changed: $0.changed, built: $0.built)
        }
        #expect(OwedSets(entries) == sets)
    }
}
