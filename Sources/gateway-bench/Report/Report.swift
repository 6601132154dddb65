import WidgetModel

/// One line of the report: a figure over all repetitions.
struct ReportRow {
    let scenario: ScenarioName
    let name: String
    let unit: String
    /// The bound of the figure.
    let bar: Bar?
    /// Whether anything but 0 means that something was lost.
    let isLoss: Bool
    /// The figure of each repetition.
    var values: [Double] = []

    /// The figure: the median; of losses the highest, for no repetition may hide one.
    var value: Double { isLoss ? (values.max() ?? 0) : Figure.median(values) }

    /// Whether the bar is met; `nil` without one.
    var isMet: Bool? { bar?.isMet(by: value) }

    private var barText: String {
        bar.map { $0.text + ($0.isMet(by: value) ? " met" : " MISSED") } ?? ""
    }

    /// Its columns: scenario, figure, median, range, unit, bar.
    var columns: [String] {
        let (low, high) = (values.min() ?? 0, values.max() ?? 0)
        let range = values.count > 1 ? "\(Figure.text(low))-\(Figure.text(high))" : ""
        return [scenario.rawValue, name, Figure.text(value), range, unit, barText]
    }

    var json: JSONValue {
        var object: JSONObject = [
            "scenario": .string(scenario.rawValue), "name": .string(name), "unit": .string(unit),
            "value": .number(value), "values": .array(values.map { .number($0) }),
        ]
        switch bar {
        case .atMost(let bound)?: object["atMost"] = .number(bound)
        case .atLeast(let bound)?: object["atLeast"] = .number(bound)
        case nil: break
        }
        if let isMet { object["met"] = .bool(isMet) }
        return .object(object)
    }
}

/// The figures of all scenarios.
struct Report {
    /// The rows, in the order in which they were first measured.
    private(set) var rows: [ReportRow] = []
    /// Scenarios that could not be measured to their end, and why.
    var failures: [(scenario: ScenarioName, reason: String)] = []

    /// Adds a repetition's figures.
    mutating func add(_ samples: [Sample]) {
        for sample in samples {
            let known = rows.firstIndex {
                $0.scenario == sample.scenario && $0.name == sample.name
            }
            let place = known ?? rows.count
            if known == nil {
                rows.append(
                    ReportRow(
                        scenario: sample.scenario, name: sample.name, unit: sample.unit,
                        bar: sample.bar ?? Bars.bar(sample.scenario, sample.name),
                        isLoss: sample.isLoss))
            }
            rows[place].values.append(sample.value)
        }
    }

    /// Whether anything was lost or stray, or failed.
    var hasLosses: Bool {
        !failures.isEmpty || rows.contains { $0.isLoss && $0.value != 0 }
    }

    var missesBar: Bool { rows.contains { $0.isMet == false } }

    /// The rows of some scenarios as a table, one line each.
    func table(of scenarios: [ScenarioName]) -> String {
        let shown = rows.filter { scenarios.contains($0.scenario) }
        return Figure.table(
            [["scenario", "figure", "median", "range", "unit", "bar"]] + shown.map(\.columns))
    }

    func json(machine: [(String, String)], settings: JSONValue) -> JSONValue {
        [
            "machine": Figure.json(machine), "settings": settings,
            "rows": .array(rows.map(\.json)), "lossless": .bool(!hasLosses),
            "failures": .array(
                failures.map {
                    ["scenario": .string($0.scenario.rawValue), "reason": .string($0.reason)]
                }),
        ]
    }
}
