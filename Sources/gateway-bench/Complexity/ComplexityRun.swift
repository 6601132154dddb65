import GatewayTestSupport

/// Sends every shape while the bystander posts, and collects the outcomes.
struct ComplexityRun {
    /// The quiet time before the first shape, in seconds.
    static let quietSeconds = 5.0
    /// The pause after a shape, in seconds, while its last requests are still processed.
    private static let pauseSeconds = 0.2
    /// The quiet time before each shape but the first, in seconds: the machine is not equally busy
    /// throughout a run.
    private static let quietSecondsBetween = 0.8
    /// The most measurements of a shape. What the host of a virtual machine takes of a processor in
    /// the middle of a turn counts as the turn's time; a document's own cost is there each time.
    private static let measurementsMax = 3

    let program: String
    /// The cores of the gateway; `nil` for any.
    let cores: [Int]?
    let shapes: [AttackShape]
    /// The length of each, in seconds.
    let seconds: Double

    func run(_ tell: (String) -> Void) throws -> ComplexityReport {
        tell("setting up: two apps, \(ComplexityStage.clients) of the largest registrations")
        return try ComplexityStage.with(program: program, cores: cores) { stage in
            let answer = try stage.gateway.http().request(
                "GET", "/openapi.json", token: stage.token)
            guard let document = answer.json, var coverage = RouteCoverage(openAPI: document)
            else { throw BenchFailure("/openapi.json names no routes") }
            let bystander = try stage.startBystander()
            defer { bystander.stop() }
            func alone(seconds: Double) throws -> BystanderStats {
                let start = monotonicNanoseconds()
                try stage.generator.run(seconds: seconds) { false }
                return try bystander.figures(since: start)
            }
            tell("the bystander without load")
            var quiet = [try alone(seconds: Self.quietSeconds)]
            var outcomes: [ShapeOutcome] = []
            var number = 0
            for shape in shapes {
                let load = try shape.load(on: stage)
                try stage.generator.run(seconds: Self.pauseSeconds) { false }
                if !outcomes.isEmpty {
                    quiet.append(try alone(seconds: Self.quietSecondsBetween))
                }
                tell("\(shape.name): \(shape.rawValue)")
                func measure() throws -> ShapeOutcome {
                    try run(shape, load, on: stage, beside: bystander, number: &number, tell)
                }
                var outcome = try measure()
                while outcome.hasLongTurns, outcome.measurements < Self.measurementsMax {
                    tell("  a turn took too long; measuring again")
                    try stage.generator.run(seconds: Self.pauseSeconds) { false }
                    outcome.add(try measure())
                }
                for route in outcome.reached { coverage.note(route, by: shape.name) }
                outcomes.append(outcome)
            }
            return ComplexityReport(
                quiet: BystanderStats(quiet), outcomes: outcomes, coverage: coverage,
                isComplete: Set(shapes) == Set(AttackShape.allCases), failure: bystander.failure)
        }
    }

    private func run(
        _ shape: AttackShape, _ load: AttackShape.Load, on stage: ComplexityStage,
        beside bystander: Bystander, number: inout Int, _ tell: (String) -> Void
    ) throws -> ShapeOutcome {
        var outcome = ShapeOutcome(shape: shape.name)
        let before = try stage.turns()
        let cpu = ProcessStats.cpuNanoseconds(stage.gateway.pid)
        let start = monotonicNanoseconds()
        switch load {
        case .requests(let requests, let connections):
            let load = AttackLoad(
                stage.generator, port: stage.gateway.port, connections: connections,
                requests: requests, firstRequest: number)
            number = try load.run(seconds: seconds)
            (outcome.statuses, outcome.lost) = (load.statuses, load.lost)
            for (index, request) in requests.enumerated() {
                if load.isReached[index] {
                    outcome.reached.insert(request.route)
                } else {
                    outcome.missed.append(request.route)
                    tell("  \(request.route): response \(load.refusals[index] ?? "none")")
                }
            }
        case .readers(let requests, let talk):
            let load = TalkingReaders(
                stage.generator, port: stage.gateway.port, requests: requests, talk: talk)
            try load.run(seconds: seconds)
            (outcome.statuses, outcome.lost) = (load.statuses, load.lost)
            if load.statuses[200] ?? 0 > 0 {
                outcome.reached = [AttackShape.streamRoute]
            } else {
                outcome.missed = [AttackShape.streamRoute]
            }
        }
        outcome.bystander = try bystander.figures(since: start)
        outcome.seconds = Double(monotonicNanoseconds() - start) / 1e9
        outcome.cpuSeconds =
            Double(ProcessStats.cpuNanoseconds(stage.gateway.pid) - cpu) / 1e9
        if let before, let after = try stage.turns() { outcome.turns = after.since(before) }
        return outcome
    }
}
