import GatewayTestSupport
import WidgetModel

/// The circumstances of one run of a row.
final class RowContext {
    let seed: UInt64
    /// The length of the faults; settling comes on top.
    let seconds: Double
    var generator: SplitMix64
    /// Results beside the judge's own.
    private(set) var figures: [(name: String, value: String)] = []
    private var totals: [String: Double] = [:]
    /// The campaign, once there is one: its record is what is judged.
    private(set) var campaign: Campaign?
    /// Returns whether so many faults, and what was recorded meanwhile, prove anything.
    private let isEnough: (_ faults: Int, Verdict) -> Bool

    /// Creates the circumstances of a run whose faults go on, past their length and up to ten times
    /// as long, until they are enough: on a busy machine little happens in a given time.
    init(
        seed: UInt64, seconds: Double,
        until isEnough: @escaping (_ faults: Int, Verdict) -> Bool = { _, _ in true }
    ) {
        self.seed = seed
        self.seconds = seconds
        self.isEnough = isEnough
        generator = SplitMix64(seed: seed)
    }

    /// Makes a campaign that will be judged. `adjust` changes the usual load.
    func makeCampaign(
        on deployment: any Deployment, _ adjust: (inout Campaign.Load) -> Void = { _ in }
    ) throws -> Campaign {
        var load = Campaign.Load()
        adjust(&load)
        let campaign = try Campaign(deployment, load, &generator)
        self.campaign = campaign
        return campaign
    }

    /// Makes a campaign that will be judged, and starts it.
    func startCampaign(
        on deployment: any Deployment, _ adjust: (inout Campaign.Load) -> Void = { _ in }
    ) throws -> Campaign {
        let campaign = try makeCampaign(on: deployment, adjust)
        campaign.start(&generator)
        return campaign
    }

    /// Repeats a fault for the length of the run and until it is enough, then settles.
    func repeatFault(on campaign: Campaign, _ fault: () throws -> Void) throws {
        let start = campaign.recorder.now
        var faults = 0
        func isOver() -> Bool {
            let elapsed = campaign.recorder.now - start
            return elapsed >= seconds
                && (elapsed >= 10 * seconds
                    || isEnough(faults, Judge.judge(campaign.recorder.record)))
        }
        while !isOver() {
            try fault()
            faults += 1
        }
        try campaign.settle()
    }

    /// Starts a gateway that was killed; at times kills it once more while it starts.
    func startAgain(_ gateway: GatewayProcess, killedPercent: Int) throws {
        let isKilled = generator.happens(killedPercent)
        count("kills while starting", isKilled ? 1 : 0)
        if isKilled {
            try gateway.launch()
            pauseRandomly(0, 0.4)
            gateway.kill()
        }
        let start = ContinuousClock.now
        try gateway.start()
        reportMost("slowest start", seconds: start.duration(to: .now) / .seconds(1))
    }

    func randomSeconds(_ low: Double, _ high: Double) -> Double {
        low + (high - low) * Double(generator.below(10_001)) / 10_000
    }

    func pauseRandomly(_ low: Double, _ high: Double) { pause(seconds: randomSeconds(low, high)) }

    func report(_ name: String, _ value: some CustomStringConvertible) {
        if let place = figures.firstIndex(where: { $0.name == name }) {
            figures[place].value = value.description
        } else {
            figures.append((name, value.description))
        }
    }

    func report(_ name: String, seconds: Double, places: Int = 2) {
        report(name, seconds.rounded(toPlaces: places) + " s")
    }

    /// Adds to a figure, which stands where it was first added to, even 0.
    func count(_ name: String, _ more: Int = 1) {
        totals[name, default: 0] += Double(more)
        report(name, Int(totals[name] ?? 0))
    }

    /// Reports the most seconds of those given so far.
    func reportMost(_ name: String, seconds: Double) {
        totals[name] = max(totals[name] ?? 0, seconds)
        report(name, seconds: totals[name] ?? 0)
    }
}
