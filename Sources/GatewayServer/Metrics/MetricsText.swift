/// Writes Prometheus text (version 0.0.4): one group per metric, HELP and TYPE before its samples.
struct MetricsText {
    private(set) var text = ""

    /// A counter; its name ends in `_total`.
    mutating func counter(_ name: String, _ help: String, _ value: UInt64) {
        head(name, help, "counter")
        text += "\(name) \(value)\n"
    }

    /// A counter by one label.
    mutating func counter(
        _ name: String, _ help: String, by label: String, _ values: [(String, UInt64)]
    ) {
        head(name, help, "counter")
        for (value, count) in values { text += "\(name){\(label)=\"\(value)\"} \(count)\n" }
    }

    /// A counter by several labels; values are escaped.
    mutating func counter(
        _ name: String, _ help: String, by labels: [String], _ samples: [([String], UInt64)]
    ) {
        head(name, help, "counter")
        for (values, count) in samples {
            let pairs = zip(labels, values).map { "\($0)=\"\(Self.escaped($1))\"" }
            text += "\(name){\(pairs.joined(separator: ","))} \(count)\n"
        }
    }

    private static func escaped(_ value: String) -> String {
        var result = ""
        for character in value {
            switch character {
            case "\\": result += "\\\\"
            case "\"": result += "\\\""
            case "\n", "\r\n", "\r": result += "\\n"
            default: result.append(character)
            }
        }
        return result
    }

    /// A gauge.
    mutating func gauge(_ name: String, _ help: String, _ value: Double) {
        head(name, help, "gauge")
        text += "\(name) \(Self.number(value))\n"
    }

    /// A histogram; buckets are made cumulative here.
    mutating func histogram(_ name: String, _ help: String, _ histogram: Histogram) {
        head(name, help, "histogram")
        samples(name, "", histogram)
    }

    /// A histogram by channel.
    mutating func histogram(_ name: String, _ help: String, _ histograms: ByChannel<Histogram>) {
        head(name, help, "histogram")
        for channel in DeliveryChannel.allCases {
            samples(name, "channel=\"\(channel.rawValue)\"", histograms[channel])
        }
    }

    private mutating func samples(_ name: String, _ label: String, _ histogram: Histogram) {
        let (counts, sum) = histogram.snapshot
        let first = label.isEmpty ? "" : label + ","
        let all = label.isEmpty ? "" : "{\(label)}"
        var total: UInt64 = 0
        for (bound, count) in zip(histogram.bounds, counts) {
            total += count
            text += "\(name)_bucket{\(first)le=\"\(Self.number(bound))\"} \(total)\n"
        }
        total += counts.last ?? 0
        text += "\(name)_bucket{\(first)le=\"+Inf\"} \(total)\n"
        text += "\(name)_sum\(all) \(Self.number(sum))\n"
        text += "\(name)_count\(all) \(total)\n"
    }

    private mutating func head(_ name: String, _ help: String, _ type: String) {
        text += "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n"
    }

    private static func number(_ value: Double) -> String {
        Int64(exactly: value).map(String.init) ?? String(value)
    }
}
