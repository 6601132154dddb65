/// The samples of a metrics page in Prometheus' text format.
package struct MetricsPage: Sendable {
    /// The value of each sample, by its name and labels as they stand on the page.
    package let samples: [String: Double]

    /// Reads a page; lines that are no samples are skipped.
    package init(_ text: some StringProtocol) {
        var samples: [String: Double] = [:]
        for line in text.split(whereSeparator: \.isNewline) where !line.hasPrefix("#") {
            guard let space = line.lastIndex(of: " "),
                let value = Double(line[line.index(after: space)...])
            else { continue }
            samples[String(line[..<space])] = value
        }
        self.samples = samples
    }

    /// The value of a sample, by its name and labels as they stand on the page.
    package subscript(_ sample: String) -> Double? { samples[sample] }

    /// Returns the samples of a metric with their labels, none of whose values may hold a quote or
    /// a comma.
    package func labelled(_ name: String) -> [(labels: [String: String], value: Double)] {
        samples.compactMap { sample, value in
            guard sample.hasPrefix(name + "{"), sample.hasSuffix("}") else { return nil }
            var labels: [String: String] = [:]
            for pair in sample.dropFirst(name.count + 1).dropLast().split(separator: ",") {
                let parts = pair.split(separator: "=", maxSplits: 1)
                guard parts.count == 2 else { continue }
                labels[String(parts[0].drop { $0 == " " })] = String(parts[1].filter { $0 != "\"" })
            }
            return (labels, value)
        }
    }
}
