import GatewayEngine
import GatewaySigning
import WidgetModel

/// One option of the configuration: its key, its kind and its meaning.
package struct ConfigurationOption: Sendable {
    /// The format of an option's value.
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
        /// A rate such as `100/1s burst 1000`.
        case rate
        /// One of the listed values.
        case choice([String])
        /// Several texts: a list in a file, elsewhere separated by commas.
        case texts
    }

    /// The key; a `*` stands for a list index.
    package let key: String
    /// The kind of its value.
    package let kind: Kind
    /// The default, in words.
    package let standard: String
    /// The meaning.
    package let help: String
}

/// All options. Any other key is an error.
package enum ConfigurationSchema {
    static func option(
        _ key: String, _ kind: ConfigurationOption.Kind, _ standard: String, _ help: String
    ) -> ConfigurationOption {
        ConfigurationOption(key: key, kind: kind, standard: standard, help: help)
    }

    static let limit = ConfigurationOption.Kind.number(1...1_000_000_000)

    /// The options, in reading order.
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
            "denied.*.jti", .text, "none",
            "`jti` of a token that is refused although it verifies; its streams end. An entry has "
                + "this, or `app` and `sub`; names are compared byte by byte. "
                + "At most \(Denylist.entriesMax) entries."),
        option("denied.*.app", .text, "none", "`app` of the tokens that are refused."),
        option("denied.*.sub", .text, "none", "`sub` of the tokens of `app` that are refused."),
        option(
            "denied.*.until", .text, "for ever",
            "When the entry ends, RFC 3339, such as 2026-12-01T00:00:00Z: no earlier than the "
                + "tokens do."),
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
            "Open connections, event streams included, beyond which new ones wait. A tenth, at most "
                + "1,000, is kept from event streams. Lowered at start where the limit of open files "
                + "is smaller."),
        option(
            "limits.connectionsPerAddress", limit, "a tenth of limits.connections, at least 1000",
            "Open connections from one IPv4 address or IPv6 /64, beyond which new ones are closed "
                + "at once. Behind a balancer that hides its clients' addresses, set it to "
                + "limits.connections; the development mode has no such limit."),
        option(
            "limits.requestBytesInWork", limit, "67108864",
            "Request bodies being received or in work, together, in bytes; each takes about 2.5 "
                + "times its size of memory. One app may use four fifths. Who does not fit "
                + "waits, for 10 s at most, and then gets 503."),
        option(
            "rates.address", .rate, "20000/1s burst 40000",
            "Requests of one source address (IPv6: /64 network). Above what one gateway accepts: "
                + "many clients or a busy backend may share an address."),
        option(
            "rates.app", .rate, "20000/1s burst 40000",
            "Requests of one app; each 16 KiB of a body count as one more. Above what one "
                + "gateway accepts: apps that compete are served in turn."),
        option(
            "rates.client", .rate, "100/1s burst 1000",
            "Requests of one client; each 16 KiB of a body count as one more."),
        option(
            "rates.refusedTokens", .rate, "100/1s burst 2000",
            "Invalid tokens from one source address; beyond it only tokens that were valid "
                + "before are looked at."),
        option("limits.eventBytes", limit, "65536", "One event."),
        option("limits.postEvents", limit, "1000", "Events of one post."),
        option("limits.postBytes", limit, "8388608", "Body of one post."),
        option("limits.catalogBytes", limit, "1048576", "A catalog."),
        option("limits.catalogKinds", limit, "500", "Kinds of a catalog."),
        option("limits.registrationBytes", limit, "262144", "A registration."),
        option("limits.registrationWidgets", limit, "200", "Widgets of a registration."),
        option("limits.widgetKeys", limit, "256", "Keys one widget may depend on."),
        option("limits.clientKeys", limit, "1000", "Keys one client may depend on."),
        option(
            "limits.changeKeys", limit, "10000",
            "Keys one change may raise by all rules of a catalog; a post may raise 20 times as many."
        ),
        option("limits.stringBytes", limit, "256", "Names and values."),
        option(
            "limits.versionKeys", limit, "1000000",
            "Keys whose versions are remembered, per app and event loop; 16 to 48 bytes each."),
        option(
            "limits.clientsPerApp", limit, "1000000",
            "Clients that may be registered with one app at once; one more gets 422, and those "
                + "there are may always register again."),
        option(
            "limits.logBytesPerApp", .number(1...1_000_000_000_000_000), "4294967296",
            "Bytes of one app's changes and catalogs in the log. A post or catalog beyond it gets "
                + "429 until retention has made room. The default is far above what small "
                + "changes come to (a million of 200 bytes take 0.2 GB) and holds a whole log of "
                + "`retention.changes` at 4 KiB each, where events of 64 KiB could take 64 GB."),
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

    /// The option for `key`, in which numbers stand for list indices.
    static func option(for key: String) -> ConfigurationOption? {
        let pattern = key.split(separator: ".", omittingEmptySubsequences: false)
            .map { Int($0) != nil ? "*" : String($0) }.joined(separator: ".")
        return options.first { $0.key == pattern }
    }
}
