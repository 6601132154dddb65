/// Writes metric families, each with its metadata and all its samples.
struct ExpositionWriter {
    private let format: ExpositionFormat
    private var text = ""

    init(_ format: ExpositionFormat) {
        self.format = format
    }

    /// The complete page.
    var finished: String {
        format == .openMetrics ? text + "# EOF\n" : text
    }

    /// Writes the metadata of a family: its type, unit and help.
    mutating func head(_ family: MetricFamily) {
        switch format {
        case .prometheus:
            let name = family.sampleName
            let type = family.kind == .info ? "gauge" : family.typeName
            text += "# HELP \(name) \(Self.escaped(family.help, quotes: false))\n"
            text += "# TYPE \(name) \(type)\n"
        case .openMetrics:
            text += "# TYPE \(family.name) \(family.typeName)\n"
            if let unit = family.unit { text += "# UNIT \(family.name) \(unit)\n" }
            text += "# HELP \(family.name) \(Self.escaped(family.help, quotes: true))\n"
        }
    }

    /// Writes a sample with a single value.
    mutating func sample(
        _ family: MetricFamily, labels values: [String], value: Samples.Value
    ) {
        let text =
            switch value {
            case .count(let count): String(count)
            case .number(let number): Self.number(number)
            }
        line(family.sampleName, Self.pairs(family, values), text)
    }

    /// Writes the samples of a histogram, with cumulative buckets.
    mutating func histogram(
        _ family: MetricFamily, labels values: [String], bounds: [Double],
        value: HistogramSeries.Value
    ) {
        let pairs = Self.pairs(family, values)
        var total: UInt64 = 0
        for (bound, count) in zip(bounds, value.counts) {
            total += count
            line(family.name + "_bucket", pairs + ["le=\"\(canonical(bound))\""], String(total))
        }
        total += value.counts.last ?? 0
        line(family.name + "_bucket", pairs + ["le=\"+Inf\""], String(total))
        line(family.name + "_sum", pairs, Self.number(value.sum))
        line(family.name + "_count", pairs, String(total))
    }

    private mutating func line(_ name: String, _ pairs: [String], _ value: String) {
        let labels = pairs.isEmpty ? "" : "{\(pairs.joined(separator: ","))}"
        text += "\(name)\(labels) \(value)\n"
    }

    private static func pairs(_ family: MetricFamily, _ values: [String]) -> [String] {
        zip(family.labels, values).map { "\($0.name)=\"\(escaped($1, quotes: true))\"" }
    }

    /// Returns a bound as text; in OpenMetrics always with a fraction.
    private func canonical(_ bound: Double) -> String {
        format == .openMetrics ? String(bound) : Self.number(bound)
    }

    private static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        guard value.isFinite else { return value < 0 ? "-Inf" : "+Inf" }
        return Int64(exactly: value).map(String.init) ?? String(value)
    }

    /// Escapes backslashes, line breaks and, where they would end the text, quotes.
    private static func escaped(_ value: String, quotes: Bool) -> String {
        var result = ""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\\": result += "\\\\"
            case "\"" where quotes: result += "\\\""
            case "\n": result += "\\n"
            case "\r": result += " "
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
