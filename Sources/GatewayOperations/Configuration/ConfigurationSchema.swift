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
        _ key: String, kind: ConfigurationOption.Kind, default standard: String, help: String
    ) -> ConfigurationOption {
        ConfigurationOption(key: key, kind: kind, standard: standard, help: help)
    }

    static let limit = ConfigurationOption.Kind.number(1...1_000_000_000)

    /// The options, in reading order.
    package static let options: [ConfigurationOption] = general + push + tracing

    private static let general: [ConfigurationOption] = [
        option(
            "data", kind: .path, default: "required",
            help: "Data directory: log, registrations, keys. One gateway."),
        option(
            "listen", kind: .address, default: "127.0.0.1:8443",
            help: "TLS port for backends and clients."),
        option(
            "admin", kind: .address, default: "127.0.0.1:9464",
            help:
                "Port of metrics, health and the dashboard: plain and open to readers on loopback, "
                + "anywhere else with TLS by the same certificate and for tokens with the scope "
                + "`operator` alone."),
        option(
            "probes", kind: .address, default: "none",
            help:
                "A plain port with /livez and /readyz alone, for an orchestrator's probes; they "
                + "are on `admin` too."),
        option(
            "publicURL", kind: .text, default: "https://HOST:PORT of listen",
            help:
                "The URL clients and tokens call the gateway by: `iss` of notifications, `aud` of "
                + "tokens."),
        option(
            "threads", kind: .number(1...1024), default: "one a core",
            help: "Event loops, each with its own shard."),
        option(
            "tls.certificate", kind: .path, default: "required", help: "Certificate chain, PEM."),
        option(
            "tls.key", kind: .path, default: "required",
            help: "Private key of the certificate, PEM."),
        option(
            "tls.clientCA", kind: .path, default: "none",
            help: "CA of client certificates; with it backends may use mutual TLS."),
        option(
            "tls.clientCertificates", kind: .choice(["none", "optional", "required"]),
            default: "none",
            help: "Whether clients are asked for a certificate."),
        option(
            "issuers.*.iss", kind: .text, default: "required",
            help: "`iss` of the issuer's tokens."),
        option(
            "issuers.*.apps", kind: .texts, default: "required",
            help: "Apps it speaks for; `*` for all."),
        option("issuers.*.scopes", kind: .texts, default: "required", help: "Scopes it may grant."),
        option(
            "issuers.*.keys", kind: .path, default: "required",
            help: "Its public keys: a JWK set or a PEM file."),
        option(
            "localIssuer", kind: .flag, default: "false",
            help: "Whether the tokens of `timeline-gateway token` and of /tokens are believed."),
        option(
            "certificates.*.uri", kind: .text, default: "required",
            help: "SAN URI of a client certificate."),
        option(
            "certificates.*.app", kind: .text, default: "required", help: "The app it speaks for."),
        option("certificates.*.scopes", kind: .texts, default: "required", help: "What it may do."),
        option(
            "denied.*.jti", kind: .text, default: "none",
            help:
                "`jti` of a token that is refused although it verifies; its streams end. An entry "
                + "has this, or `app` and `sub`; names are compared byte by byte. "
                + "At most \(Denylist.entriesMax) entries."),
        option(
            "denied.*.app", kind: .text, default: "none",
            help: "`app` of the tokens that are refused."),
        option(
            "denied.*.sub", kind: .text, default: "none",
            help: "`sub` of the tokens of `app` that are refused."),
        option(
            "denied.*.until", kind: .text, default: "for ever",
            help:
                "When the entry ends, RFC 3339, such as 2026-12-01T00:00:00Z: no earlier than the "
                + "tokens do."),
        option(
            "signing.algorithm", kind: .choice(["EdDSA", "ES256"]), default: "EdDSA",
            help: "Algorithm of a signing key that has to be made."),
        option(
            "signing.lifetime", kind: .duration, default: "15m",
            help: "From `iat` to `exp` of a notification."),
        option(
            "signing.publishLead", kind: .duration, default: "5m",
            help:
                "How long a new key is published before it signs; how long verifiers may cache "
                + "keys."),
        option(
            "retention.age", kind: .duration, default: "7d",
            help: "Changes older than this leave the log."),
        option(
            "retention.changes", kind: limit, default: "1000000",
            help: "Most entries of the log. Who resumes from before its start rebuilds "
                + "everything."),
        option(
            "retention.clientDays", kind: .number(1...3650), default: "90",
            help: "Clients unseen so long go."),
        option(
            "streams.perClient", kind: .number(1...64), default: "4",
            help: "Streams one client may hold."),
        option(
            "streams.stall", kind: .duration, default: "30s",
            help: "A stream that takes no bytes for so long is closed; it resumes at no loss."),
        option(
            "streams.retry", kind: .duration, default: "2s",
            help: "Reconnection time told to readers."),
        option(
            "limits.connections", kind: limit, default: "100000",
            help:
                "Open connections, event streams included, beyond which new ones wait. A tenth, at "
                + "most 1,000, is kept from event streams. Lowered at start where the limit of "
                + "open files is smaller."),
        option(
            "limits.connectionsPerAddress", kind: limit,
            default: "a tenth of limits.connections, at least 1000",
            help:
                "Open connections from one IPv4 address or IPv6 /64, beyond which new ones are "
                + "closed at once. Behind a balancer that hides its clients' addresses, set it to "
                + "limits.connections; the development mode has no such limit."),
        option(
            "limits.requestBytesInWork", kind: limit, default: "67108864",
            help:
                "Request bodies being received or in work, together, in bytes; each takes about "
                + "2.5 times its size of memory. One app may use four fifths. Who does not fit "
                + "waits, for 10 s at most, and then gets 503."),
        option(
            "rates.address", kind: .rate, default: "20000/1s burst 40000",
            help:
                "Requests of one source address (IPv6: /64 network). Above what one gateway "
                + "accepts: many clients or a busy backend may share an address."),
        option(
            "rates.app", kind: .rate, default: "20000/1s burst 40000",
            help: "Requests of one app; each 16 KiB of a body count as one more. Above what one "
                + "gateway accepts: apps that compete are served in turn."),
        option(
            "rates.client", kind: .rate, default: "100/1s burst 1000",
            help: "Requests of one client; each 16 KiB of a body count as one more."),
        option(
            "rates.refusedTokens", kind: .rate, default: "100/1s burst 2000",
            help: "Invalid tokens from one source address; beyond it only tokens that were valid "
                + "before are looked at."),
        option("limits.eventBytes", kind: limit, default: "65536", help: "One event."),
        option("limits.postEvents", kind: limit, default: "1000", help: "Events of one post."),
        option("limits.postBytes", kind: limit, default: "8388608", help: "Body of one post."),
        option("limits.catalogBytes", kind: limit, default: "1048576", help: "A catalog."),
        option("limits.catalogKinds", kind: limit, default: "500", help: "Kinds of a catalog."),
        option("limits.registrationBytes", kind: limit, default: "262144", help: "A registration."),
        option(
            "limits.registrationWidgets", kind: limit, default: "200",
            help: "Widgets of a registration."),
        option(
            "limits.widgetKeys", kind: limit, default: "256",
            help: "Keys one widget may depend on."),
        option(
            "limits.clientKeys", kind: limit, default: "1000",
            help: "Keys one client may depend on."),
        option(
            "limits.changeKeys", kind: limit, default: "10000",
            help:
                "Keys one change may raise by all rules of a catalog; a post may raise 20 times as "
                + "many."),
        option("limits.stringBytes", kind: limit, default: "256", help: "Names and values."),
        option(
            "limits.versionKeys", kind: limit, default: "1000000",
            help: "Keys whose versions are remembered, per app and event loop; 16 to 48 bytes "
                + "each."),
        option(
            "limits.clientsPerApp", kind: limit, default: "1000000",
            help:
                "Clients that may be registered with one app at once; one more gets 422, and those "
                + "there are may always register again."),
        option(
            "limits.logBytesPerApp", kind: .number(1...1_000_000_000_000_000),
            default: "4294967296",
            help:
                "Bytes of one app's changes and catalogs in the log. A post or catalog beyond it "
                + "gets 429 until retention has made room. The default is far above what small "
                + "changes come to (a million of 200 bytes take 0.2 GB) and holds a whole log of "
                + "`retention.changes` at 4 KiB each, where events of 64 KiB could take 64 GB."),
        option(
            "log.level",
            kind: .choice(["trace", "debug", "info", "notice", "warning", "error", "critical"]),
            default: "info",
            help: "From which level on something is logged, on standard error."),
        option(
            "log.levels", kind: .texts, default: "none",
            help:
                "Other levels by logger, such as `timeline-gateway.push=debug`, or by a field's "
                + "value, such as `client:my-iphone=trace`."),
        option(
            "log.format", kind: .choice(LogFormat.allCases.map(\.rawValue)), default: "logfmt",
            help: "How a line is written."),
    ]

    /// The option for `key`, in which numbers stand for list indices.
    static func option(for key: String) -> ConfigurationOption? {
        let pattern = key.split(separator: ".", omittingEmptySubsequences: false)
            .map { Int($0) != nil ? "*" : String($0) }.joined(separator: ".")
        return options.first { $0.key == pattern }
    }
}
