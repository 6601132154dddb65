import WidgetModel

/// All that a run found.
struct ComplexityReport {
    /// The bystander alone.
    let quiet: BystanderFigures
    /// The shapes, in their order.
    let outcomes: [ShapeOutcome]
    /// Which shapes reached which routes.
    let coverage: RouteCoverage
    /// Whether every shape ran.
    let isComplete: Bool
    /// What went wrong with the bystander's connection.
    let trouble: String?

    /// What the run is judged by.
    var verdict: ComplexityVerdict {
        ComplexityVerdict(
            quiet: quiet, outcomes: outcomes, coverage: isComplete ? coverage : nil)
    }

    /// The shapes, the routes and the verdict, for a person.
    var text: String {
        let shapes =
            [
                [
                    "shape", "2xx", "4xx", "5xx", "lost", "p50 ms", "p99 ms", "slowest ms",
                    "turns over 5 ms", "CPU s", "of s",
                ],
                Self.row("(quiet)", ["", "", "", ""], quiet, "", "", ""),
            ]
            + outcomes.map { outcome in
                Self.row(
                    outcome.shape,
                    [2, 4, 5].map { String(outcome.answers($0)) } + ["\(outcome.lost)"],
                    outcome.bystander, Self.turns(outcome), Figure.text(outcome.cpuSeconds),
                    Figure.text(outcome.seconds))
            }
        let routes =
            [["route", "shapes"]]
            + coverage.routes.map { route in
                let names = coverage.shapes[route]?.joined(separator: ", ")
                let isRequired = coverage.required.contains(route)
                return [route.description, names ?? (isRequired ? "NONE" : "none needed")]
            }
        let bounds =
            [["bound", "held", "found"]]
            + verdict.bounds.map { [$0.name, $0.isMet ? "yes" : "NO", $0.finding] }
        let trouble = trouble.map { "\n\nthe bystander: \($0)" } ?? ""
        return [shapes, routes, bounds].map(Self.table).joined(separator: "\n\n") + trouble
    }

    private static func row(
        _ name: String, _ answers: [String], _ figures: BystanderFigures, _ turns: String,
        _ cpu: String, _ seconds: String
    ) -> [String] {
        [name] + answers
            + [figures.percentile(0.5), figures.percentile(0.99), figures.slowest].map(Figure.text)
            + [turns, cpu, seconds]
    }

    private static func turns(_ outcome: ShapeOutcome) -> String {
        guard let turns = outcome.turns else { return "no histogram" }
        let long = turns.long.map { "\($0.thread) \($0.count)" }
        return long.isEmpty ? "none" : long.joined(separator: ", ")
    }

    /// Lines of cells as a table; a line may not have more cells than the first.
    private static func table(_ lines: [[String]]) -> String {
        let widths = (lines.first ?? []).indices.map { column in
            lines.map { $0[column].count }.max() ?? 0
        }
        return lines.map { line in
            var text = ""
            for (cell, width) in zip(line, widths) {
                text += cell + String(repeating: " ", count: width - cell.count + 2)
            }
            return String(text.reversed().drop { $0 == " " }.reversed())
        }.joined(separator: "\n")
    }

    /// The same as one document.
    func json(machine: [(String, String)]) -> JSONValue {
        var described = JSONObject()
        for (name, value) in machine { described[name] = .string(value) }
        var routes = JSONObject()
        for route in coverage.routes {
            routes[route.description] = .array((coverage.shapes[route] ?? []).map { .string($0) })
        }
        return [
            "machine": .object(described), "quiet": Self.json(quiet),
            "shapes": .array(outcomes.map(Self.json)), "routes": .object(routes),
            "bounds": .array(verdict.bounds.map(Self.json)), "met": .bool(verdict.isMet),
        ]
    }

    private static func json(_ bound: ComplexityVerdict.Bound) -> JSONValue {
        [
            "name": .string(bound.name), "met": .bool(bound.isMet),
            "found": .string(bound.finding),
        ]
    }

    private static func json(_ figures: BystanderFigures) -> JSONValue {
        [
            "posts": .integer(Int64(figures.milliseconds.count)),
            "failed": .integer(Int64(figures.failed)), "p50": .number(figures.percentile(0.5)),
            "p99": .number(figures.percentile(0.99)), "slowest": .number(figures.slowest),
        ]
    }

    private static func json(_ outcome: ShapeOutcome) -> JSONValue {
        var statuses = JSONObject()
        for (status, count) in outcome.statuses.sorted(by: { $0.key < $1.key }) {
            statuses[String(status)] = .integer(Int64(count))
        }
        var turns = JSONObject()
        for (thread, counted) in (outcome.turns?.byThread ?? [:]).sorted(by: { $0.key < $1.key }) {
            turns[thread] = [
                "count": .integer(Int64(counted.count)), "long": .integer(Int64(counted.long)),
            ]
        }
        return [
            "shape": .string(outcome.shape), "statuses": .object(statuses),
            "lost": .integer(Int64(outcome.lost)), "bystander": json(outcome.bystander),
            "turns": outcome.turns == nil ? .null : .object(turns),
            "cpuSeconds": .number(outcome.cpuSeconds), "seconds": .number(outcome.seconds),
            "measurements": .integer(Int64(outcome.measurements)),
        ]
    }
}
