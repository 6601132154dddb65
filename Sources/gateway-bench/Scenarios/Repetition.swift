/// One repetition of scenarios; each is a method that returns its figures.
struct Repetition {
    let settings: BenchSettings
    /// The number of the repetition, from 1.
    let number: Int
    /// Reports progress.
    let tell: (String) -> Void

    /// Opens streams, and reports their number now and then.
    func open(_ count: Int, of fleet: StreamFleet, keepsID: Bool = false) throws {
        try fleet.open(count, keepsID: keepsID) { tell("\($0) streams are open") }
    }

    /// Returns the figures of what was lost in phases.
    func losses(
        _ scenario: ScenarioName, in phases: [PhaseStats], of fleet: StreamFleet
    ) -> [Sample] {
        let sum = phases.reduce(PhaseStats(), +)
        return [
            .loss(scenario, "lost", sum.count.outstanding),
            .loss(scenario, "stray", sum.count.stray),
            .loss(scenario, "streams broken", fleet.failed),
        ]
    }
}
