/// The declaration of a metric. Both the exposition and the documentation page are generated from
/// it.
package struct MetricFamily: Sendable {
    /// The type of the values.
    package enum Kind: Sendable, Equatable {
        /// A number that only increases, except for a restart.
        case counter
        /// A number that goes up and down.
        case gauge
        /// Observations, counted in buckets with these upper bounds, ascending.
        case histogram(bounds: [Double])
        /// Always 1: the information is in the labels.
        case info
    }

    /// A label with the maximum number of its values.
    package struct Label: Sendable, Equatable {
        /// The value that replaces all values beyond ``valuesMax``.
        package static let other = "other"

        package let name: String
        /// The maximum number of different values; further ones count as ``other``.
        package let valuesMax: Int

        package init(_ name: String, valuesMax: Int) {
            self.name = name
            self.valuesMax = valuesMax
        }
    }

    /// The name without the suffix of its samples: `x_seconds`, not `x_seconds_bucket`.
    package let name: String
    /// The type of the values.
    package let kind: Kind
    /// The unit, which is the end of the name; `nil` for counts.
    package let unit: String?
    /// The description for operators, in one sentence.
    package let help: String
    /// The labels in the order of their values.
    package let labels: [Label]

    /// The name must end in the unit (OpenMetrics 1.0, MetricFamily metadata), and bounds must
    /// ascend.
    package init(
        _ name: String, _ kind: Kind, unit: String? = nil, labels: [Label] = [], _ help: String
    ) {
        precondition(unit.map { name.hasSuffix("_" + $0) } ?? true, "\(name) lacks its unit")
        if case .histogram(let bounds) = kind {
            precondition(zip(bounds, bounds.dropFirst()).allSatisfy(<), "\(name)'s bounds")
        }
        self.name = name
        self.kind = kind
        self.unit = unit
        self.labels = labels
        self.help = help
    }

    package var seriesMax: Int {
        labels.reduce(1) { product, label in
            let (result, overflow) = product.multipliedReportingOverflow(by: label.valuesMax + 1)
            return overflow ? .max : result
        }
    }

    /// The name of its only sample, or of samples that are neither sum nor buckets.
    package var sampleName: String {
        switch kind {
        case .counter: name + "_total"
        case .info: name + "_info"
        case .gauge, .histogram: name
        }
    }

    /// The name of its type in OpenMetrics.
    package var typeName: String {
        switch kind {
        case .counter: "counter"
        case .gauge: "gauge"
        case .histogram: "histogram"
        case .info: "info"
        }
    }
}
