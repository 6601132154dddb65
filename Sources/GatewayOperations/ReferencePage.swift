import GatewayEngine
import OpenMetrics

/// The documentation pages generated from definitions in the code. Each names the command that
/// generates it, and a test compares it with the file in `Deploy`.
package enum ReferencePage: String, CaseIterable, Sendable {
    /// Every metric.
    case metrics
    /// Every option of the configuration.
    case configuration

    /// The page in Markdown.
    package var markdown: String {
        let made = "Made by `timeline-gateway reference \(rawValue)`; do not edit.\n\n"
        switch self {
        case .metrics:
            return "# Metrics\n\n" + made + Self.metricsIntroduction
                + MetricsReference.markdown(MetricFamily.gateway)
        case .configuration:
            return "# Configuration\n\n" + made + Self.configurationIntroduction
                + Self.configurationTable
        }
    }

    private static let metricsIntroduction = """
        `/metrics` of the admin port answers in Prometheus text 0.0.4, or in OpenMetrics 1.0.0 where \
        `Accept` prefers it. Names are as Prometheus has them; histograms add `_bucket`, `_sum` and \
        `_count`. Beyond the number given, further values of a label count as `other`.


        """

    private static let configurationIntroduction = """
        The file is YAML or JSON, in which `tls.certificate` is `certificate` within `tls`; a `*` is the \
        place in a list. All but lists can stand in the environment too, as `TIMELINE_GATEWAY_` and the \
        key in capitals with `_` for `.`. An option that is not here is an error. \
        `timeline-gateway check-config` finds everything that is wrong at once.


        """

    private static var configurationTable: String {
        var text = "| option | takes | default | what it does |\n|---|---|---|---|\n"
        for option in ConfigurationSchema.options {
            text += "| `\(option.key)` | \(option.kind.words) | \(option.standard) "
            text += "| \(option.help.replacing("|", with: "\\|")) |\n"
        }
        return text
    }
}

extension ConfigurationOption.Kind {
    /// The accepted values, for people.
    fileprivate var words: String {
        switch self {
        case .text: "text"
        case .address: "`HOST:PORT`"
        case .path: "path"
        case .flag: "`true` or `false`"
        case .number(let range): "\(range.lowerBound) to \(range.upperBound)"
        case .fraction: "0 to 1, such as `0.05`"
        case .rate: "rate: `COUNT/DURATION` or `COUNT/DURATION burst COUNT`"
        case .duration: "duration, such as `90s`, `15m`, `1h`, `7d`"
        case .choice(let choices): choices.map { "`\($0)`" }.joined(separator: ", ")
        case .texts: "list of texts"
        }
    }
}
