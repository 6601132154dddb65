import Testing

@testable import GatewayCore

@Suite struct APNsEnvironmentChoiceTests {
    @Test(arguments: APNsEnvironment.allCases)
    func `the other environment is tried once`(stated: APNsEnvironment) {
        var choice = APNsEnvironmentChoice(stated: stated)
        #expect(choice.current == stated && choice.mayTryOther)
        choice.swap()
        #expect(choice.current == stated.other && !choice.mayTryOther)
        choice.swap()
        #expect(choice.current == stated.other)
    }

    @Test func `what worked stays`() {
        for swaps in [false, true] {
            var choice = APNsEnvironmentChoice(stated: .production)
            if swaps { choice.swap() }
            let current = choice.current
            choice.worked(in: current)
            choice.swap()
            #expect(choice.current == current && !choice.mayTryOther)
        }
    }

    @Test func `a push still under way in the one stated proves it`() {
        var choice = APNsEnvironmentChoice(stated: .production)
        choice.swap()
        choice.worked(in: .production)
        #expect(choice.current == .production && choice.standing == .proven)
    }

    @Test func `it survives being persisted`() {
        var choice = APNsEnvironmentChoice(stated: .sandbox)
        choice.swap()
        let read = APNsEnvironmentChoice(
            current: APNsEnvironment(rawValue: choice.current.rawValue) ?? .sandbox,
            standing: .init(rawValue: choice.standing.rawValue) ?? .stated)
        #expect(read == choice)
    }
}
