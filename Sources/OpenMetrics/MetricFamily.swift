/// What is known of a metric before anything is measured: the page of an exposition and the page of
/// the documentation are both made of it.
package struct MetricFamily: Sendable {
    /// What its values are.
    package enum Kind: Sendable, Equatable {
        /// A number that only grows, but for a restart.
        case counter
        /// A number that goes up and down.
        case gauge
        /// Observations, counted in buckets up to these bounds, ascending.
        case histogram(bounds: [Double])
        /// Always 1: what it says is in its labels.
        case info
    }

    /// A label, and how many different values of it are told apart.
    package struct Label: Sendable, Equatable {
        /// The value that stands for all beyond ``valuesMax``.
        package static let other = "other"

        /// Its name.
        package let name: String
        /// Different values; further ones count as ``other``.
        package let valuesMax: Int

        /// A label.
        package init(_ name: String, valuesMax: Int) {
            self.name = name
            self.valuesMax = valuesMax
        }
    }

    /// Its name without the suffix of its samples: `x_seconds`, and not `x_seconds_bucket`.
    package let name: String
    /// What its values are.
    package let kind: Kind
    /// What they are measured in, which ends the name; `nil` where they are counts.
    package let unit: String?
    /// What it tells, in one sentence for operators.
    package let help: String
    /// Its labels, in the order in which values are given.
    package let labels: [Label]

    /// A family.
    ///
    /// - Precondition: the name ends in the unit (OpenMetrics 1.0, MetricFamily metadata), and bounds
    ///   ascend.
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

    /// The most series there can be of it.
    package var seriesMax: Int {
        labels.reduce(1) { product, label in
            let (result, overflow) = product.multipliedReportingOverflow(by: label.valuesMax + 1)
            return overflow ? .max : result
        }
    }

    /// The name of its only sample, or of those with neither sum nor buckets.
    package var sampleName: String {
        switch kind {
        case .counter: name + "_total"
        case .info: name + "_info"
        case .gauge, .histogram: name
        }
    }

    /// What OpenMetrics calls its type.
    package var typeName: String {
        switch kind {
        case .counter: "counter"
        case .gauge: "gauge"
        case .histogram: "histogram"
        case .info: "info"
        }
    }
}
