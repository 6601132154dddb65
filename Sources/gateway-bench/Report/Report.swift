import WidgetModel

/// One line of the report: a figure over all repetitions.
struct ReportRow {
    /// The scenario it belongs to.
    let scenario: ScenarioName
    /// Whether its streams were HTTP/2 connections.
    let isHTTP2: Bool
    /// The name of the figure.
    let name: String
    /// The unit.
    let unit: String
    /// The bound of the figure.
    let bar: Bar?
    /// The bound of its ratio to the peer's.
    let peerBar: Bar?
    /// Whether anything but 0 means that something was lost.
    let isLoss: Bool
    /// The figure of each repetition.
    var values: [Double] = []
    /// The peer's figure of each repetition.
    var peerValues: [Double] = []

    /// The figure: the median; of losses the highest, for no repetition may hide one.
    var value: Double { middle(values) }
    /// The peer's, in the same way.
    var peer: Double? { peerValues.isEmpty ? nil : middle(peerValues) }
    /// Ours by the peer's.
    var ratio: Double? { peer.flatMap { $0 == 0 || isLoss ? nil : value / $0 } }

    private func middle(_ values: [Double]) -> Double {
        isLoss ? (values.max() ?? 0) : Figure.median(values)
    }

    /// Whether the bars are met; `nil` without one.
    var isMet: Bool? {
        let met = [bar?.isMet(by: value), ratio.flatMap { peerBar?.isMet(by: $0) }]
            .compactMap { $0 }
        return met.isEmpty ? nil : met.allSatisfy { $0 }
    }

    private var barText: String {
        let texts = [bar?.text, ratio == nil ? nil : peerBar.map { "ratio \($0.text)" }]
            .compactMap { $0 }
        return isMet.map { texts.joined(separator: ", ") + ($0 ? " met" : " MISSED") } ?? ""
    }

    /// The scenario as the report names it.
    private var scenarioText: String { scenario.rawValue + (isHTTP2 ? " h2" : "") }

    /// Its columns: figure, range, unit, bar, peer, ratio.
    func columns(hasPeer: Bool) -> [String] {
        var columns = [scenarioText, name, Figure.text(value)]
        let (low, high) = (values.min() ?? 0, values.max() ?? 0)
        columns.append(values.count > 1 ? "\(Figure.text(low))-\(Figure.text(high))" : "")
        columns.append(unit)
        columns.append(barText)
        if hasPeer {
            columns.append(peer.map(Figure.text) ?? "")
            columns.append(ratio.map(Figure.text) ?? "")
        }
        return columns
    }

    var json: JSONValue {
        var object: JSONObject = [
            "scenario": .string(scenarioText), "name": .string(name), "unit": .string(unit),
            "value": .number(value), "values": .array(values.map { .number($0) }),
        ]
        switch bar {
        case .atMost(let bound)?: object["atMost"] = .number(bound)
        case .atLeast(let bound)?: object["atLeast"] = .number(bound)
        case nil: break
        }
        switch peerBar {
        case .atMost(let bound)? where ratio != nil: object["ratioAtMost"] = .number(bound)
        case .atLeast(let bound)? where ratio != nil: object["ratioAtLeast"] = .number(bound)
        default: break
        }
        if let isMet { object["met"] = .bool(isMet) }
        if let peer { object["peer"] = .number(peer) }
        if let ratio { object["ratio"] = .number(ratio) }
        return .object(object)
    }
}

/// The figures of all scenarios.
struct Report {
    /// Whether streams were HTTP/2 connections; no bars apply then.
    var isHTTP2 = false
    /// The rows, in the order in which they were first measured.
    private(set) var rows: [ReportRow] = []
    /// Scenarios that could not be measured to their end, and why.
    var failures: [(scenario: ScenarioName, reason: String)] = []

    /// Adds a repetition's figures.
    mutating func add(_ samples: [Sample], isPeer: Bool = false) {
        for sample in samples {
            let known = rows.firstIndex {
                $0.scenario == sample.scenario && $0.name == sample.name
            }
            let place = known ?? rows.count
            if known == nil {
                rows.append(
                    ReportRow(
                        scenario: sample.scenario, isHTTP2: isHTTP2, name: sample.name,
                        unit: sample.unit,
                        bar: sample.bar
                            ?? (isHTTP2 ? nil : Bars.own(sample.scenario, sample.name)),
                        peerBar: isHTTP2 ? nil : Bars.byPeer(sample.scenario, sample.name),
                        isLoss: sample.isLoss))
            }
            if isPeer {
                rows[place].peerValues.append(sample.value)
            } else {
                rows[place].values.append(sample.value)
            }
        }
    }

    /// Whether anything was lost or stray, or failed.
    var hasLosses: Bool {
        !failures.isEmpty
            || rows.contains { $0.isLoss && ($0.value != 0 || $0.peer ?? 0 != 0) }
    }

    /// Whether a bar was missed.
    var missesBar: Bool { rows.contains { $0.isMet == false } }

    /// The rows of some scenarios as a table, one line each.
    func table(of scenarios: [ScenarioName]) -> String {
        let shown = rows.filter { scenarios.contains($0.scenario) }
        let hasPeer = shown.contains { $0.peer != nil }
        var lines = [["scenario", "figure", "median", "range", "unit", "bar"]]
        if hasPeer { lines[0] += ["peer", "ratio"] }
        lines += shown.map { $0.columns(hasPeer: hasPeer) }
        return Figure.table(lines)
    }

    /// The report as one document.
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
