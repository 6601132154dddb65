import WidgetModel

/// The bound of a figure.
enum Bar: Equatable {
    /// It should not be above this.
    case atMost(Double)
    /// It should not be below this.
    case atLeast(Double)

    func isMet(by value: Double) -> Bool {
        switch self {
        case .atMost(let bound): value <= bound
        case .atLeast(let bound): value >= bound
        }
    }

    /// It in words.
    var text: String {
        switch self {
        case .atMost(let bound): "<= \(Figure.text(bound))"
        case .atLeast(let bound): ">= \(Figure.text(bound))"
        }
    }
}

/// One figure of one repetition.
struct Sample {
    let scenario: ScenarioName
    /// The name; one row of the report.
    let name: String
    let unit: String
    let value: Double
    /// The bound, if there is one.
    var bar: Bar?
    /// Whether anything but 0 means that something was lost.
    var isLoss = false

    init(
        _ scenario: ScenarioName, _ name: String, _ value: Double, unit: String = "",
        bar: Bar? = nil
    ) {
        (self.scenario, self.name, self.value, self.unit) = (scenario, name, value, unit)
        self.bar = bar
    }

    /// A count of losses or stray deliveries: it has to be 0.
    static func loss(_ scenario: ScenarioName, _ name: String, _ count: Int) -> Sample {
        var sample = Sample(scenario, name, Double(count), bar: .atMost(0))
        sample.isLoss = true
        return sample
    }
}

/// Numbers and tables for people.
enum Figure {
    /// About four digits.
    static func text(_ value: Double) -> String {
        let size = abs(value)
        let isWhole = value == value.rounded()
        let decimals = isWhole || size >= 1_000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 3
        let scale = [1.0, 10, 100, 1_000][decimals]
        // Figures are far below 2^63; others keep their own form.
        guard let scaled = Int64(exactly: (size * scale).rounded()) else { return "\(value)" }
        let (whole, rest) = scaled.quotientAndRemainder(dividingBy: Int64(scale))
        let sign = value < 0 ? "-" : ""
        guard decimals > 0 else { return "\(sign)\(whole)" }
        let digits = String(rest)
        let zeros = String(repeating: "0", count: max(0, decimals - digits.count))
        return "\(sign)\(whole).\(zeros)\(digits)"
    }

    /// Returns the middle one; of an even number the mean of the two. 0 for none.
    static func median(_ values: [Double]) -> Double {
        let sorted = values.sorted()
        guard !sorted.isEmpty else { return 0 }
        let middle = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }

    /// Returns lines of cells as a table; no line may have fewer cells than the first.
    static func table(_ lines: [[String]]) -> String {
        let widths = (lines.first ?? []).indices.map { column in
            lines.map { $0[column].count }.max() ?? 0
        }
        return lines.map { line in
            let text = zip(line, widths).map { cell, width in
                cell + String(repeating: " ", count: width - cell.count + 2)
            }.joined()
            return String(text.reversed().drop { $0 == " " }.reversed())
        }.joined(separator: "\n")
    }

    /// Returns described values as a JSON object.
    static func json(_ values: [(String, String)]) -> JSONValue {
        .object(values.reduce(into: JSONObject()) { $0[$1.0] = .string($1.1) })
    }
}
