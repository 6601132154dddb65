/// Runs scenarios and gathers what they measure.
struct BenchSession {
    let settings: BenchSettings
    /// Whether each scenario's table is printed when it is done.
    let printsTables: Bool
    /// What was measured so far.
    private(set) var report: Report

    /// A session that has measured nothing.
    init(settings: BenchSettings, printsTables: Bool) {
        (self.settings, self.printsTables) = (settings, printsTables)
        report = Report(isHTTP2: settings.isHTTP2)
    }

    /// Measures `scenarios` in their order. One that fails is noted, and the next one follows.
    ///
    /// - Throws: ``Interruption`` alone.
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
            switch group[0] {
            case .fanout, .latency:
                try FanOut(settings: settings, scenarios: group).measure(into: &report, tell)
            case .handshake: try Handshakes(settings: settings).measure(into: &report, tell)
            case .burst: report.add(try Burst(settings: settings).measure(tell))
            case .slow: report.add(try SlowReaders(settings: settings).measure(tell))
            case .storm: report.add(try Storm(settings: settings).measure(tell))
            case .accept: report.add(try Requests(settings: settings).measureAccept(tell))
            case .register: report.add(try Requests(settings: settings).measureRegister(tell))
            case .push:
                try Pushes(settings: settings).measure(into: &report, repetition, tell)
            case .costs: report.add(try Costs(settings: settings).measure(tell))
            case .decide where settings.isInProcess:
                report.add(Decide(settings: settings).measureInProcess(tell))
            case .decide: report.add(try Decide(settings: settings).measure(tell))
            }
        }
    }
}
