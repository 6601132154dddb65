/// Runs scenarios and gathers what they measure.
struct BenchSession {
    let settings: BenchSettings
    /// Whether each scenario's table is printed when it is done.
    let printsTables: Bool
    /// The figures so far.
    private(set) var report = Report()

    /// Measures `scenarios` in their order. A failure is recorded, and the next one follows. Throws
    /// ``Interruption`` alone.
    mutating func run(_ scenarios: [ScenarioName]) throws {
        var rest = scenarios
        while let first = rest.first {
            // Both are measured on the same streams.
            let pair: [ScenarioName] = [.fanout, .latency]
            let group = pair.contains(first) ? pair.filter(rest.contains) : [first]
            rest.removeAll { group.contains($0) }
            for scenario in group {
                Terminal.tell("\(scenario.rawValue): \(scenario.abstract)")
            }
            do {
                try measure(group)
            } catch let interruption as Interruption {
                throw interruption
            } catch {
                // A signal may show first as a server that went away.
                try Interruption.check()
                Terminal.tell("gateway-bench: \(first.rawValue): \(error)")
                report.failures.append((first, "\(error)"))
            }
            if printsTables, report.rows.contains(where: { group.contains($0.scenario) }) {
                Terminal.print(report.table(of: group) + "\n")
            }
        }
    }

    private mutating func measure(_ group: [ScenarioName]) throws {
        for repetition in 1...settings.repetitions {
            try Interruption.check()
            let names = group.map(\.rawValue).joined(separator: ", ")
            let tell = { [settings] (text: String) in
                Terminal.tell("  \(names) \(repetition)/\(settings.repetitions): \(text)")
            }
            let run = Repetition(settings: settings, tell: tell)
            switch group[0] {
            case .fanout, .latency: report.add(try run.fanOut(group))
            case .storm: report.add(try run.storm())
            case .accept: report.add(try run.accept())
            case .register: report.add(try run.register())
            case .push: report.add(try run.pushes())
            case .cluster: report.add(try run.cluster())
            case .costs: report.add(try run.costs())
            case .decide where settings.isInProcess: report.add(run.decideInProcess())
            case .decide: report.add(try run.decide())
            }
        }
    }
}
