import GatewayCore
import GatewaySigning
import GatewayTLS
import WidgetModel

/// One option of the configuration: its key, its kind, its meaning and its property.
package struct ConfigurationOption: Sendable {
    /// The format of an option's value; `ReferencePage` says it in words. Texts are a list in a
    /// file, and elsewhere separated by commas.
    package enum Kind: Sendable {
        case text, address, path, flag, fraction, duration, rate, texts
        case number(ClosedRange<Int>)
        case choice([String])
    }

    /// The key; a `*` stands for a list index.
    package let key: String
    package let kind: Kind
    /// The default, in words.
    package let standard: String
    package let help: String
    /// Sets the option's property; `nil` if the property is read together with others.
    var read: (@Sendable (inout ConfigurationLayers, inout GatewayConfiguration) -> Void)?
}

extension ConfigurationOption {
    /// The property that an option sets.
    typealias Property<Value> = any WritableKeyPath<GatewayConfiguration, Value> & Sendable

    /// An option that is read together with others.
    static func option(
        _ key: String, _ kind: Kind, default standard: String, _ help: String
    ) -> ConfigurationOption {
        ConfigurationOption(key: key, kind: kind, standard: standard, help: help)
    }

    /// An option that sets a property to what `read` finds, if anything.
    static func setting<Value: Sendable>(
        _ key: String, _ kind: Kind, sets property: Property<Value>,
        by read: @escaping @Sendable (inout ConfigurationLayers, String) -> Value?,
        default standard: String, _ help: String
    ) -> ConfigurationOption {
        ConfigurationOption(key: key, kind: kind, standard: standard, help: help) {
            if let value = read(&$0, key) { $1[keyPath: property] = value }
        }
    }

    static func number<Number: BinaryInteger & Sendable>(
        _ key: String, in range: ClosedRange<Int> = 1...1_000_000_000,
        _ property: Property<Number>, _ help: String
    ) -> ConfigurationOption {
        setting(
            key, .number(range), sets: property, by: { $0.number($1).map { Number($0) } },
            default: "\(GatewayConfiguration.standard[keyPath: property])", help)
    }

    /// - Parameter unit: The property's value of one second.
    static func duration<Number: BinaryInteger & Sendable>(
        _ key: String, in range: ClosedRange<Int>? = nil, _ property: Property<Number>,
        unit: Number = 1, _ help: String
    ) -> ConfigurationOption {
        let read: @Sendable (inout ConfigurationLayers, String) -> Number? = { layers, key in
            guard let seconds = layers.seconds(key) else { return nil }
            if let range, !range.contains(Int(seconds)) {
                layers.fault(key, "must be \(range.lowerBound)s to \(range.upperBound)s")
            }
            return Number(seconds) * unit
        }
        let standard = Int(GatewayConfiguration.standard[keyPath: property] / unit)
        return setting(
            key, .duration, sets: property, by: read, default: text(seconds: standard), help)
    }

    /// The text of a duration in its largest whole unit.
    private static func text(seconds: Int) -> String {
        for (unit, size) in [("d", 86_400), ("h", 3_600), ("m", 60)] where seconds % size == 0 {
            return "\(seconds / size)\(unit)"
        }
        return "\(seconds)s"
    }
}

/// All options. Any other key is an error.
package enum ConfigurationSchema {
    /// The options, in the order of the reference.
    package static let options: [ConfigurationOption] =
        [general, load, sizes, usage, push, tracing].flatMap { $0 }

    static let general: [ConfigurationOption] = [
        .option(
            "data", .path, default: "required",
            "Data directory with log, registrations and keys. Used by one gateway at a time."),
        .option(
            "cluster.url", .text, default: "none",
            "The PostgreSQL servers whose log this node shares with other gateways: "
                + "postgres://USER@HOST/DATABASE with sslmode=verify-full, or a Unix socket. The "
                + "user is the login of the node."),
        .option(
            "cluster.key", .path, default: "required with cluster.url",
            "File with the keys that seal what lies in the database: 32 bytes each, the current "
                + "key first, then older ones; the same on all nodes, readable by its owner only."),
        .option(
            "cluster.durability", .choice(ClusterSettings.Durability.allCases.map(\.rawValue)),
            default: "quorum",
            "Where a change must be flushed before its post is answered: on the primary and a "
                + "standby, or on the primary only."),
        .option(
            "cluster.node", .address, default: "required with cluster.url",
            "Host and port at which the other nodes reach this one; also its name in the cluster. "
                + "Only nodes connect there, by TLS with a key derived from the cluster's secret."),
        .option(
            "listen", .address, default: "127.0.0.1:8443", "TLS port for backends and clients."),
        .option(
            "admin", .address, default: "127.0.0.1:9464",
            "Port for metrics, health checks and the dashboard: plain HTTP without a token for "
                + "readers on loopback; on other addresses TLS with the same certificate, and a "
                + "token with the scope `operator`, or `operator:read` to read."),
        .option(
            "probes", .address, default: "none",
            "Plain HTTP port with only /livez and /readyz, for an orchestrator's probes. `admin` "
                + "has them too."),
        .option(
            "publicURL", .text, default: "https://HOST:PORT of listen",
            "Public URL of the gateway: `iss` of notifications, `aud` of tokens."),
        .option(
            "threads", .number(1...1024), default: "one per core",
            "Event loops, each with its own shard."),
        .option("tls.certificate", .path, default: "required", "Certificate chain, PEM."),
        .option("tls.key", .path, default: "required", "Private key of the certificate, PEM."),
        .option(
            "tls.clientCA", .path, default: "none",
            "CA of client certificates. Required for mutual TLS."),
        .option(
            "tls.clientCRL", .path, default: "none",
            "Lists of revoked client certificates, PEM: one of each CA that issues them. A "
                + "certificate that is listed, or whose CA has no list here or an expired one, is "
                + "refused. Read again when the file is replaced; open connections continue."),
        .option(
            "tls.clientCertificates", .choice(["none", "optional", "required"]), default: "none",
            "Whether client certificates are requested."),
        .option(
            "proxies.trusted", .texts, default: "none",
            "Addresses of proxies that state the addresses of their clients on the TLS port "
                + "`listen`, such as 10.0.0.7 or 10.0.0.0/8; `limits.connectionsPerAddress`, the "
                + "rates and the log use them. Nobody else may connect from these addresses."),
        .option(
            "proxies.protocol", .choice(ProxyProtocol.allCases.map(\.rawValue)),
            default: "none; required with proxies.trusted",
            "`proxyV2`: each connection of a trusted proxy begins with a header of the PROXY "
                + "protocol, version 2; others are closed. `forwarded`: its HTTP requests have "
                + "`Forwarded` (RFC 7239), which the proxy must set or append to; the last entry "
                + "not of a trusted proxy counts."),
        .setting(
            "cors.origins", .texts, sets: \.corsOrigins, by: { $0.origins($1) }, default: "none",
            "Origins of web pages that may read the routes of clients and the keys, such as "
                + "https://www.example.com: exactly as browsers send them, without a path and "
                + "without the scheme's own port."),
        .option("issuers.*.iss", .text, default: "required", "`iss` of the issuer's tokens."),
        .option(
            "issuers.*.apps", .texts, default: "required",
            "Apps that the issuer may name; `*` for all."),
        .option(
            "issuers.*.scopes", .texts, default: "required", "Scopes that the issuer may grant."),
        .option(
            "issuers.*.keys", .path, default: "required",
            "The issuer's public keys: a file with a JWK set, a JWK or PEM, or the HTTPS URL of a "
                + "JWK set, which is fetched again as its `max-age` says and when a token names an "
                + "unknown key. Ed25519, P-256, or RSA of 2,048 bits or more (RS256, PS256)."),
        .option(
            "issuerKeys.allowedRanges", .texts, default: "none",
            "Addresses that the URLs of keys may have in addition to public ones, such as "
                + "10.0.0.0/8."),
        .option(
            "issuerKeys.ca", .path, default: "the system's",
            "Trusted certificates for the URLs of keys, PEM."),
        .option(
            "localIssuer", .flag, default: "false",
            "Whether tokens of `timeline-gateway token` and of /tokens are accepted."),
        .option(
            "certificates.*.uri", .text, default: "required", "SAN URI of a client certificate."),
        .option(
            "certificates.*.app", .text, default: "required",
            "The app that the certificate may access."),
        .option("certificates.*.scopes", .texts, default: "required", "Scopes of the certificate."),
        .option(
            "denied.*.jti", .text, default: "none",
            "`jti` of a valid token to deny; its streams are closed. An entry has either `jti`, or "
                + "`app` and `sub`; names are compared byte by byte. At most "
                + "\(Denylist.entriesMax) entries."),
        .option("denied.*.app", .text, default: "none", "`app` of denied tokens."),
        .option("denied.*.sub", .text, default: "none", "`sub` of denied tokens of `app`."),
        .option(
            "denied.*.until", .text, default: "never",
            "When the entry ends, RFC 3339, such as 2026-12-01T00:00:00Z: not before the tokens "
                + "expire."),
        .option(
            "signing.algorithm", .choice(["EdDSA", "ES256"]), default: "EdDSA",
            "Algorithm of new signing keys."),
        .duration(
            "signing.lifetime", \.notificationLifetime,
            "Lifetime of a notification, from `iat` to `exp`."),
        .duration(
            "signing.publishLead", \.publishLead,
            "How long a new key is published before it signs. Verifiers may cache keys for as "
                + "long."),
        .duration("retention.age", \.retentionSeconds, "Maximum age of changes in the log."),
        .number(
            "retention.changes", \.retentionChanges,
            "Maximum number of log entries. A client that resumes from before the log's start "
                + "rebuilds everything."),
        .number(
            "retention.clientDays", in: 1...3650, \.clientDays,
            "Days after which a client that was not seen is removed."),
        .number(
            "streams.perClient", in: 1...64, \.streamsPerClient,
            "Maximum number of streams per client, and of polls that wait. A further one takes the "
                + "place of the client's oldest: the stream ends with a reconnection time of a "
                + "minute, the poll with 429."),
        .duration(
            "streams.stall", \.streams.stallMilliseconds, unit: 1_000,
            "Timeout after which a stream that does not read is closed, and one whose reader "
                + "vanished. Its client can resume without loss."),
        .duration(
            "streams.heartbeat", in: StreamSettings.heartbeatSecondsRange,
            \.streams.heartbeatSeconds,
            "Interval of the heartbeats of an idle stream, 1s to 30s. Each updates the client's "
                + "cursor, keeps proxies from closing the stream, and notices a vanished reader."),
        .duration(
            "streams.retry", \.streams.retryMilliseconds, unit: 1_000,
            "Reconnection time sent to stream clients."),
    ]

    static let load: [ConfigurationOption] = [
        .number(
            "limits.connections", \.connectionsMax,
            "Maximum number of open connections, including event streams; new ones wait. A tenth, "
                + "at most 1,000, is reserved for other requests than event streams. Lowered at "
                + "start if the limit of open files is smaller."),
        .setting(
            "limits.connectionsPerAddress", .number(1...1_000_000_000),
            sets: \.connectionsPerAddressMax,
            by: { $0.number($1) }, default: "a tenth of limits.connections, at least 1000",
            "Maximum number of open connections from one IPv4 address or IPv6 /64; more are closed "
                + "immediately. Behind a load balancer that hides client addresses, set it to "
                + "limits.connections. Development mode has no such limit."),
        .duration(
            "limits.idleTimeout", \.idleSeconds,
            "Time between two requests after which a connection is closed. A balancer's own has to "
                + "be shorter: it could send a request just then. Google's is 600s, Envoy's 1h."),
        .number(
            "limits.requestBytesInWork", \.requestBytesInWork,
            "Total bytes of request bodies received or processed, counted as they arrive; each "
                + "uses about 2.5 times its size in memory. One app may use four fifths. Requests "
                + "beyond it wait for up to 10 s, under way for up to 20 s more, then get 503; up "
                + "to 8 under way exceed it, so that bodies do not wait for each other."),
        .setting(
            "rates.address", .rate, sets: \.rates.address, by: { $0.rate($1) },
            default: "20000/1s burst 40000",
            "Requests from one source address (IPv6: /64 network). The default is above what one "
                + "gateway accepts, because many clients or a busy backend may share an address."),
        .setting(
            "rates.app", .rate, sets: \.rates.app, by: { $0.rate($1) },
            default: "20000/1s burst 40000",
            "Requests for one app; each 16 KiB of a body counts as one more. The default is above "
                + "what one gateway accepts, because competing apps are served in turn."),
        .setting(
            "rates.client", .rate, sets: \.rates.client, by: { $0.rate($1) },
            default: "100/1s burst 1000",
            "Requests for one client; each 16 KiB of a body counts as one more."),
        .setting(
            "rates.tickets", .rate, sets: \.rates.tickets, by: { $0.rate($1) },
            default: "60/1m burst 60",
            "Tickets of one client, one for each stream that a browser opens."),
        .setting(
            "rates.refusedTokens", .rate, sets: \.rates.refusedTokens, by: { $0.rate($1) },
            default: "100/1s burst 2000",
            "Invalid tokens and tickets from one source address. Tokens that name a trusted key, "
                + "others and tickets are counted apart; "
                + "beyond a count only what was verified before is accepted of its kind."),
        .setting(
            "rates.pushAddresses", .rate, sets: \.rates.pushAddresses, by: { $0.rate($1) },
            default: "64/1d burst 128",
            "New push addresses of one client: those that its registration before did not have. "
                + "Beyond it a registration with new ones gets 429. Counted since the start."),
    ]

    static let sizes: [ConfigurationOption] = [
        .number("limits.eventBytes", \.limits.eventBytesMax, "Maximum bytes of an event."),
        .number("limits.postEvents", \.limits.postEventsMax, "Maximum number of events in a post."),
        .number("limits.postBytes", \.limits.postBytesMax, "Maximum bytes of a post's body."),
        .number("limits.catalogBytes", \.limits.catalogBytesMax, "Maximum bytes of a catalog."),
        .number(
            "limits.catalogKinds", \.limits.catalogKindsMax,
            "Maximum number of kinds in a catalog."),
        .number(
            "limits.registrationBytes", \.limits.registrationBytesMax,
            "Maximum bytes of a registration."),
        .number(
            "limits.registrationWidgets", \.limits.registrationWidgetsMax,
            "Maximum number of widgets in a registration."),
        .number(
            "limits.pushAddresses", \.limits.pushAddressesMax,
            "Maximum number of different push addresses in a registration, those of its controls "
                + "included."),
        .number(
            "limits.widgetKeys", \.limits.widgetKeysMax,
            "Maximum number of keys a widget depends on."),
        .number(
            "limits.clientKeys", \.limits.clientKeysMax,
            "Maximum number of keys a client depends on."),
        .number(
            "limits.changeKeys", \.limits.changeKeysMax,
            "Maximum number of keys a change may invalidate, by all rules of a catalog; 20 times "
                + "as many for a post."),
        .number(
            "limits.stringBytes", \.limits.stringBytesMax, "Maximum bytes of names and values."),
    ]

    static let usage: [ConfigurationOption] = [
        .number(
            "limits.versionKeys", \.coreLimits.versionKeysMax,
            "Maximum number of keys whose versions are in memory, per app; 20 bytes each, shared "
                + "by all event loops."),
        .number(
            "limits.clientsPerApp", \.quota.clientsMax,
            "Maximum number of registered clients per app. New clients beyond it get 422; existing "
                + "ones can always register again."),
        .number(
            "limits.logBytesPerApp", in: 1...1_000_000_000_000_000, \.quota.logBytesMax,
            "Maximum bytes of one app's changes and catalogs in the log. Posts and catalogs beyond "
                + "it get 429 until retention has freed space. The default is far above what small "
                + "changes use (a million of 200 bytes take 0.2 GB) and holds a full log of "
                + "`retention.changes` at 4 KiB each; events of 64 KiB could take 64 GB."),
        .option(
            "log.level",
            .choice(["trace", "debug", "info", "notice", "warning", "error", "critical"]),
            default: "info",
            "Minimum level of log messages, on standard error."),
        .option(
            "log.levels", .texts, default: "none",
            "Levels for single loggers, such as `timeline-gateway.push=debug`, or for a field's "
                + "value, such as `client:my-iphone=trace`."),
        .option(
            "log.format", .choice(LogFormat.allCases.map(\.rawValue)), default: "logfmt",
            "Format of log lines."),
    ]

    /// The option for `key`, in which numbers stand for list indices.
    static func option(for key: String) -> ConfigurationOption? {
        let pattern = key.split(separator: ".", omittingEmptySubsequences: false)
            .map { Int($0) != nil ? "*" : String($0) }.joined(separator: ".")
        return options.first { $0.key == pattern }
    }

    /// The parts whose options a running gateway applies when they change.
    private static let live: Set = [
        "tls", "issuers", "issuerKeys", "certificates", "denied", "retention", "apns",
        "webPush", "fcm", "push", "webhooks", "log",
    ]

    /// Whether a running gateway applies a change of an option, or of the list of denied tokens.
    static func isLive(_ key: String) -> Bool {
        (key == "denied" || option(for: key) != nil)
            && live.contains(String(key.prefix { $0 != "." }))
    }
}
