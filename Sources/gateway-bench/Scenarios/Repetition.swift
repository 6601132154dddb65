/// One repetition of scenarios; each is a method that returns its figures.
struct Repetition {
    let settings: BenchSettings
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
        [
            .loss(scenario, "lost", phases.reduce(0) { $0 + $1.count.outstanding }),
            .loss(scenario, "stray", phases.reduce(0) { $0 + $1.count.stray }),
            .loss(scenario, "streams broken", fleet.failed),
        ]
    }
}
