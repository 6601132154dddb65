/// The documentation page that lists every metric.
package enum MetricsReference {
    /// Returns the families as a Markdown table, in the order of the page.
    package static func markdown(_ families: [MetricFamily]) -> String {
        var text = "| metric | type | labels | description |\n|---|---|---|---|\n"
        for family in families {
            let labels = family.labels
                .map { "`\($0.name)` (at most \($0.valuesMax))" }.joined(separator: ", ")
            text += "| `\(family.sampleName)` | \(family.typeName) | \(labels) "
            text += "| \(family.help.replacing("|", with: "\\|")) |\n"
        }
        return text
    }
}
