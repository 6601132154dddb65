import GatewayEngine
import GatewayOperations
import GatewayTelemetry

/// The documentation pages generated from definitions in the code. Each names the command that
/// generates it, and a test compares it with the file in `Deploy`.
package enum ReferencePage: String, CaseIterable, Sendable {
    case metrics
    /// Every option of the configuration.
    case configuration
    /// Every limit that an honest peer can meet.
    case limits

    package var markdown: String {
        let made = "Made by `timeline-gateway reference \(rawValue)`; do not edit.\n\n"
        switch self {
        case .metrics:
            return "# Metrics\n\n" + made + Self.metricsIntroduction
                + MetricsReference.markdown(MetricFamily.gateway)
        case .configuration:
            return "# Configuration\n\n" + made + Self.configurationIntroduction
                + Self.configurationTable
        case .limits: return "# Limits\n\n" + made + LimitsReference.markdown
        }
    }

    private static let metricsIntroduction = """
        `/metrics` on the admin port responds with Prometheus text 0.0.4, or with OpenMetrics \
        1.0.0 if `Accept` prefers it. Names are the sample names in Prometheus; histograms add \
        `_bucket`, `_sum` and `_count`. Label values beyond the given maximum count as `other`.


        """

    private static let configurationIntroduction = """
        The file is YAML or JSON; `tls.certificate` is `certificate` within `tls`, and `*` \
        stands for the index in a list. Options outside lists can also be set in the \
        environment, as `TIMELINE_GATEWAY_` and the key in capitals with `_` for `.`. An unknown \
        option is an error. `timeline-gateway check-config` lists all errors.


        """

    private static var configurationTable: String {
        var text = "| option | values | default | description |\n|---|---|---|---|\n"
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
        case .text: "string"
        case .address: "`HOST:PORT`"
        case .path: "path"
        case .flag: "`true` or `false`"
        case .number(let range): "\(range.lowerBound) to \(range.upperBound)"
        case .fraction: "0 to 1, such as `0.05`"
        case .rate: "rate: `COUNT/DURATION` or `COUNT/DURATION burst COUNT`"
        case .duration: "duration, such as `90s`, `15m`, `1h`, `7d`"
        case .choice(let choices): choices.map { "`\($0)`" }.joined(separator: ", ")
        case .texts: "list of strings"
        }
    }
}
