import WidgetModel

/// The result of a run.
struct ComplexityReport {
    let quiet: BystanderStats
    /// The shapes, in their order.
    let outcomes: [ShapeOutcome]
    /// The routes that each shape reached.
    let coverage: RouteCoverage
    /// Whether every shape ran.
    let isComplete: Bool
    /// The failure of the bystander's connection.
    let failure: String?

    var verdict: ComplexityVerdict {
        ComplexityVerdict(
            quiet: quiet, outcomes: outcomes, coverage: isComplete ? coverage : nil)
    }

    /// The shapes, the routes and the verdict, for a person.
    var text: String {
        let shapes =
            [
                [
                    "shape", "2xx", "4xx", "5xx", "lost", "p50 CPU ms", "p99 CPU ms", "most CPU ms",
                    "turns over 5 ms", "CPU s", "of s",
                ],
                ["(quiet)", "", "", "", ""] + Self.cells(quiet) + ["", "", ""],
            ]
            + outcomes.map { outcome in
                [outcome.shape] + [2, 4, 5].map { String(outcome.answers($0)) }
                    + ["\(outcome.lost)"] + Self.cells(outcome.bystander)
                    + [Self.turns(outcome), Figure.text(outcome.cpuSeconds)]
                    + [Figure.text(outcome.seconds)]
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
        let failure = failure.map { "\n\nthe bystander: \($0)" } ?? ""
        return [shapes, routes, bounds].map(Figure.table).joined(separator: "\n\n") + failure
    }

    private static func cells(_ figures: BystanderStats) -> [String] {
        [figures.percentile(0.5), figures.percentile(0.99), figures.slowest].map(Figure.text)
    }

    private static func turns(_ outcome: ShapeOutcome) -> String {
        guard let turns = outcome.turns else { return "no histogram" }
        let long = turns.long.map { "\($0.thread) \($0.count)" }
        return long.isEmpty ? "none" : long.joined(separator: ", ")
    }

    /// The same as one document.
    func json(machine: [(String, String)]) -> JSONValue {
        var routes = JSONObject()
        for route in coverage.routes {
            routes[route.description] = .array((coverage.shapes[route] ?? []).map { .string($0) })
        }
        return [
            "machine": Figure.json(machine), "quiet": Self.json(quiet),
            "shapes": .array(outcomes.map(Self.json)), "routes": .object(routes),
            "bounds": .array(verdict.bounds.map(\.json)), "met": .bool(verdict.isMet),
        ]
    }

    private static func json(_ figures: BystanderStats) -> JSONValue {
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
