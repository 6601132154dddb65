import WidgetModel

/// One option of the configuration: what it is called, takes and means.
package struct ConfigurationOption: Sendable {
    /// What an option's text has to be.
    package enum Kind: Sendable {
        /// Any text.
        case text
        /// `HOST:PORT`.
        case address
        /// A path of a file or directory.
        case path
        /// `true` or `false`.
        case flag
        /// A whole number within bounds.
        case number(ClosedRange<Int>)
        /// A number from 0 to 1, such as `0.05`.
        case fraction
        /// A duration such as `90s`, `15m`, `1h` or `7d`.
        case duration
        /// One of these.
        case choice([String])
        /// Several texts, in a file as a list, elsewhere separated by commas.
        case texts
    }

    /// The key; a `*` stands for the place in a list.
    package let key: String
    /// What it takes.
    package let kind: Kind
    /// What it is without configuration, in words.
    package let standard: String
    /// What it does.
    package let help: String
}

/// Every option there is. A key that is not here is an error.
package enum ConfigurationSchema {
    static func option(
        _ key: String, _ kind: ConfigurationOption.Kind, _ standard: String, _ help: String
    ) -> ConfigurationOption {
        ConfigurationOption(key: key, kind: kind, standard: standard, help: help)
    }

    static let limit = ConfigurationOption.Kind.number(1...1_000_000_000)

    /// The options, in the order in which a person meets them.
    package static let options: [ConfigurationOption] = general + push + tracing

    private static let general: [ConfigurationOption] = [
        option("data", .path, "required", "Data directory: log, registrations, keys. One gateway."),
        option("listen", .address, "127.0.0.1:8443", "TLS port for backends and clients."),
        option(
            "admin", .address, "127.0.0.1:9464",
            "Port of metrics, health and the dashboard: plain and open to readers on loopback, "
                + "anywhere else with TLS by the same certificate and for tokens with the scope "
                + "`operator` alone."),
        option(
            "probes", .address, "none",
            "A plain port with /livez and /readyz alone, for an orchestrator's probes; they are on "
                + "`admin` too."),
        option(
            "publicURL", .text, "https://HOST:PORT of listen",
            "The URL clients and tokens call the gateway by: `iss` of notifications, `aud` of "
                + "tokens."),
        option("threads", .number(1...1024), "one a core", "Event loops, each with its own shard."),
        option("tls.certificate", .path, "required", "Certificate chain, PEM."),
        option("tls.key", .path, "required", "Private key of the certificate, PEM."),
        option(
            "tls.clientCA", .path, "none",
            "CA of client certificates; with it backends may use mutual TLS."),
        option(
            "tls.clientCertificates", .choice(["none", "optional", "required"]), "none",
            "Whether clients are asked for a certificate."),
        option("issuers.*.iss", .text, "required", "`iss` of the issuer's tokens."),
        option("issuers.*.apps", .texts, "required", "Apps it speaks for; `*` for all."),
        option("issuers.*.scopes", .texts, "required", "Scopes it may grant."),
        option("issuers.*.keys", .path, "required", "Its public keys: a JWK set or a PEM file."),
        option(
            "localIssuer", .flag, "false",
            "Whether the tokens of `timeline-gateway token` and of /tokens are believed."),
        option("certificates.*.uri", .text, "required", "SAN URI of a client certificate."),
        option("certificates.*.app", .text, "required", "The app it speaks for."),
        option("certificates.*.scopes", .texts, "required", "What it may do."),
        option(
            "signing.algorithm", .choice(["EdDSA", "ES256"]), "EdDSA",
            "Algorithm of a signing key that has to be made."),
        option("signing.lifetime", .duration, "15m", "From `iat` to `exp` of a notification."),
        option(
            "signing.publishLead", .duration, "5m",
            "How long a new key is published before it signs; how long verifiers may cache keys."),
        option("retention.age", .duration, "7d", "Changes older than this leave the log."),
        option(
            "retention.changes", limit, "1000000",
            "Most entries of the log. Who resumes from before its start rebuilds everything."),
        option("retention.clientDays", .number(1...3650), "90", "Clients unseen so long go."),
        option("streams.perClient", .number(1...64), "4", "Streams one client may hold."),
        option(
            "streams.stall", .duration, "30s",
            "A stream that takes no bytes for so long is closed; it resumes at no loss."),
        option("streams.retry", .duration, "2s", "Reconnection time told to readers."),
        option(
            "limits.connections", limit, "100000",
            "Open connections, beyond which new ones wait; and event streams, refused beyond it."),
        option("limits.eventBytes", limit, "65536", "One event."),
        option("limits.postEvents", limit, "1000", "Events of one post."),
        option("limits.postBytes", limit, "8388608", "Body of one post."),
        option("limits.catalogBytes", limit, "1048576", "A catalog."),
        option("limits.catalogKinds", limit, "500", "Kinds of a catalog."),
        option("limits.registrationBytes", limit, "262144", "A registration."),
        option("limits.registrationWidgets", limit, "200", "Widgets of a registration."),
        option("limits.widgetKeys", limit, "256", "Keys one widget may depend on."),
        option("limits.clientKeys", limit, "1000", "Keys one client may depend on."),
        option("limits.stringBytes", limit, "256", "Names and values."),
        option(
            "limits.versionKeys", limit, "1000000",
            "Keys whose versions are remembered, per app and event loop; 16 to 48 bytes each."),
        option(
            "log.level",
            .choice(["trace", "debug", "info", "notice", "warning", "error", "critical"]), "info",
            "From which level on something is logged, on standard error."),
        option(
            "log.levels", .texts, "none",
            "Other levels by logger, such as `timeline-gateway.push=debug`, or by a field's value, "
                + "such as `client:my-iphone=trace`."),
        option(
            "log.format", .choice(LogFormat.allCases.map(\.rawValue)), "logfmt",
            "How a line is written."),
    ]

    /// The option that `key`, with numbers for places in lists, belongs to.
    static func option(for key: String) -> ConfigurationOption? {
        let pattern = key.split(separator: ".", omittingEmptySubsequences: false)
            .map { Int($0) != nil ? "*" : String($0) }.joined(separator: ".")
        return options.first { $0.key == pattern }
    }
}
