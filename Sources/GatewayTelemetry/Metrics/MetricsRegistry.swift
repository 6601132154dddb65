import CoreMetrics
import Synchronization

/// Stores the metrics of declared families, and writes the metrics page: a backend of
/// swift-metrics.
///
/// Undeclared metrics are dropped, so that the page never contains more than its documentation.
/// Labels are limited: beyond ``MetricFamily/Label/valuesMax`` different values of a label, further
/// ones count as `other`.
package final class MetricsRegistry: MetricsFactory {
    fileprivate enum Series {
        case counter(CounterSeries)
        case gauge(GaugeSeries)
        case histogram(HistogramSeries)
    }

    fileprivate struct FamilyState {
        var series: [[String]: Series] = [:]
        /// The distinct values, by label.
        var values: [Set<String>]
    }

    /// The families in the order of the page.
    package let families: [MetricFamily]
    private let places: [String: Int]
    private let state: Mutex<[FamilyState]>

    /// Creates a registry of these families, which must have different names.
    package init(_ families: [MetricFamily]) {
        self.families = families
        places = Dictionary(uniqueKeysWithValues: families.enumerated().map { ($1.name, $0) })
        state = Mutex(
            families.map { FamilyState(values: Array(repeating: [], count: $0.labels.count)) })
    }

    private func series(_ label: String, _ dimensions: [(String, String)]) -> Series? {
        guard let place = places[label] else { return nil }
        let family = families[place]
        let given = family.labels.map { label in
            dimensions.first { $0.0 == label.name }?.1 ?? ""
        }
        return state.withLock { states in
            if let known = states[place].series[given] { return known }
            let values = states[place].bound(given, by: family.labels)
            if let known = states[place].series[values] { return known }
            let series: Series
            switch family.kind {
            case .counter: series = .counter(CounterSeries())
            case .gauge, .info: series = .gauge(GaugeSeries())
            case .histogram(let bounds): series = .histogram(HistogramSeries(bounds: bounds))
            }
            states[place].series[values] = series
            return series
        }
    }

    // MARK: MetricsFactory

    package func makeCounter(
        label: String, dimensions: [(String, String)]
    ) -> any CounterHandler {
        if case .counter(let series) = series(label, dimensions) { return series }
        return NOOPMetricsHandler.instance
    }

    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        if case .gauge(let series) = series(label, dimensions) { return series }
        return NOOPMetricsHandler.instance
    }

    /// Returns a histogram; without `aggregate`, a gauge.
    package func makeRecorder(
        label: String, dimensions: [(String, String)], aggregate: Bool
    ) -> any RecorderHandler {
        if case .histogram(let series) = series(label, dimensions) { return series }
        return NOOPMetricsHandler.instance
    }

    /// Returns a histogram in seconds.
    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        if case .histogram(let series) = series(label, dimensions) { return series }
        return NOOPMetricsHandler.instance
    }

    /// Does nothing: an existing counter stays on the page, because it must not decrease.
    package func destroyCounter(_ handler: any CounterHandler) {}
    package func destroyMeter(_ handler: any MeterHandler) {}
    package func destroyRecorder(_ handler: any RecorderHandler) {}
    package func destroyTimer(_ handler: any TimerHandler) {}

    // MARK: Reading

    /// Returns the stored values of a family, sorted by labels; none for a family that is sampled.
    package func readings(of family: MetricFamily) -> [Reading] {
        guard let place = places[family.name] else { return [] }
        let series = state.withLock { $0[place].series }
        return series.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { labels, series in
            switch series {
            case .counter(let series): Reading(labels: labels, value: .count(series.value))
            case .gauge(let series): Reading(labels: labels, value: .number(series.value))
            case .histogram(let series):
                Reading(
                    labels: labels,
                    value: .histogram(bounds: series.bounds, counts: series.value.counts))
            }
        }
    }

    // MARK: The page

    /// Returns the page with all stored values and those that `sample` adds.
    package func page(
        _ format: ExpositionFormat, sampling sample: (inout Samples) -> Void = { _ in }
    ) -> String {
        var samples = Samples()
        sample(&samples)
        let states = state.withLock { $0 }
        var writer = ExpositionWriter(format)
        for (family, state) in zip(families, states) {
            let sampled = samples.values[family.name] ?? []
            writer.head(family)
            for (values, value) in sampled { writer.sample(family, labels: values, value: value) }
            let ordered = state.series.sorted { $0.key.lexicographicallyPrecedes($1.key) }
            for (values, series) in ordered {
                switch series {
                case .counter(let series):
                    writer.sample(family, labels: values, value: .count(series.value))
                case .gauge(let series):
                    writer.sample(family, labels: values, value: .number(series.value))
                case .histogram(let series):
                    writer.histogram(
                        family, labels: values, bounds: series.bounds, value: series.value)
                }
            }
        }
        return writer.finished
    }
}

extension MetricsRegistry.FamilyState {
    fileprivate mutating func bound(
        _ given: [String], by labels: [MetricFamily.Label]
    ) -> [String] {
        given.indices.map { place in
            if values[place].contains(given[place]) { return given[place] }
            guard values[place].count < labels[place].valuesMax else {
                return MetricFamily.Label.other
            }
            values[place].insert(given[place])
            return given[place]
        }
    }
}

/// Values that are read from elsewhere when the page is created.
package struct Samples {
    enum Value {
        case count(UInt64)
        case number(Double)
    }

    private(set) var values: [String: [(labels: [String], value: Value)]] = [:]

    package mutating func count(_ family: MetricFamily, _ labels: String..., is value: UInt64) {
        add(family, labels, .count(value))
    }

    package mutating func gauge(_ family: MetricFamily, _ labels: String..., is value: Double) {
        add(family, labels, .number(value))
    }

    package mutating func info(_ family: MetricFamily, _ labels: [String]) {
        add(family, labels, .count(1))
    }

    /// Adds a value. Values beyond the maximum number of series of a family are dropped, so the
    /// caller must add the most important ones first.
    private mutating func add(_ family: MetricFamily, _ labels: [String], _ value: Value) {
        guard labels.count == family.labels.count,
            values[family.name, default: []].count < family.seriesMax
        else { return }
        values[family.name, default: []].append((labels, value))
    }
}
