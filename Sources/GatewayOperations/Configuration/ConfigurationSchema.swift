import GatewaySigning
import GatewayTLS

/// One option of the configuration: its key, its kind and its meaning.
package struct ConfigurationOption: Sendable {
    /// The format of an option's value.
    package enum Kind: Sendable {
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
            help:
                "Data directory with log, registrations and keys. Used by one gateway at a time."),
        option(
            "cluster.url", kind: .text, default: "none",
            help:
                "The PostgreSQL servers whose log this node shares with other gateways: "
                + "postgres://USER@HOST/DATABASE with sslmode=verify-full, or a Unix socket. The "
                + "user is the login of the node."),
        option(
            "cluster.key", kind: .path, default: "required with cluster.url",
            help:
                "File with the keys that seal what lies in the database: 32 bytes each, the current "
                + "key first, then older ones; the same on all nodes, readable by its owner only."),
        option(
            "cluster.durability",
            kind: .choice(ClusterSettings.Durability.allCases.map(\.rawValue)),
            default: "quorum",
            help:
                "Where a change must be flushed before its post is answered: on the primary and a "
                + "standby, or on the primary only."),
        option(
            "cluster.node", kind: .address, default: "required with cluster.url",
            help:
                "Host and port at which the other nodes reach this one; also its name in the cluster. "
                + "Only nodes connect there, by TLS with a key derived from the cluster's secret."),
        option(
            "listen", kind: .address, default: "127.0.0.1:8443",
            help: "TLS port for backends and clients."),
        option(
            "admin", kind: .address, default: "127.0.0.1:9464",
            help:
                "Port for metrics, health checks and the dashboard: plain HTTP without a token for "
                + "readers on loopback; on other addresses TLS with the same certificate, and a "
                + "token with the scope `operator`, or `operator:read` to read."),
        option(
            "probes", kind: .address, default: "none",
            help:
                "Plain HTTP port with only /livez and /readyz, for an orchestrator's probes. `admin` "
                + "has them too."),
        option(
            "publicURL", kind: .text, default: "https://HOST:PORT of listen",
            help: "Public URL of the gateway: `iss` of notifications, `aud` of tokens."),
        option(
            "threads", kind: .number(1...1024), default: "one per core",
            help: "Event loops, each with its own shard."),
        option(
            "tls.certificate", kind: .path, default: "required", help: "Certificate chain, PEM."),
        option(
            "tls.key", kind: .path, default: "required",
            help: "Private key of the certificate, PEM."),
        option(
            "tls.clientCA", kind: .path, default: "none",
            help: "CA of client certificates. Required for mutual TLS."),
        option(
            "tls.clientCRL", kind: .path, default: "none",
            help:
                "Lists of revoked client certificates, PEM: one of each CA that issues them. A "
                + "certificate that is listed, or whose CA has no list here or an expired one, is "
                + "refused. Read again when the file is replaced; open connections continue."),
        option(
            "tls.clientCertificates", kind: .choice(["none", "optional", "required"]),
            default: "none",
            help: "Whether client certificates are requested."),
        option(
            "proxies.trusted", kind: .texts, default: "none",
            help:
                "Addresses of proxies that state the addresses of their clients on the TLS port "
                + "`listen`, such as 10.0.0.7 or 10.0.0.0/8; `limits.connectionsPerAddress`, the "
                + "rates and the log use them. Nobody else may connect from these addresses."),
        option(
            "proxies.protocol", kind: .choice(ProxyProtocol.allCases.map(\.rawValue)),
            default: "none; required with proxies.trusted",
            help:
                "`proxyV2`: each connection of a trusted proxy begins with a header of the PROXY "
                + "protocol, version 2; others are closed. `forwarded`: its HTTP requests have "
                + "`Forwarded` (RFC 7239), which the proxy must set or append to; the last entry not "
                + "of a trusted proxy counts."),
        option(
            "issuers.*.iss", kind: .text, default: "required", help: "`iss` of the issuer's tokens."
        ),
        option(
            "issuers.*.apps", kind: .texts, default: "required",
            help: "Apps that the issuer may name; `*` for all."),
        option(
            "issuers.*.scopes", kind: .texts, default: "required",
            help: "Scopes that the issuer may grant."),
        option(
            "issuers.*.keys", kind: .path, default: "required",
            help:
                "The issuer's public keys: a file with a JWK set, a JWK or PEM, or the HTTPS URL of a "
                + "JWK set, which is fetched again as its `max-age` says and when a token names an "
                + "unknown key. Ed25519, P-256, or RSA of 2,048 bits or more (RS256, PS256)."),
        option(
            "issuerKeys.allowedRanges", kind: .texts, default: "none",
            help:
                "Addresses that the URLs of keys may have in addition to public ones, such as "
                + "10.0.0.0/8."),
        option(
            "issuerKeys.ca", kind: .path, default: "the system's",
            help: "Trusted certificates for the URLs of keys, PEM."),
        option(
            "localIssuer", kind: .flag, default: "false",
            help: "Whether tokens of `timeline-gateway token` and of /tokens are accepted."),
        option(
            "certificates.*.uri", kind: .text, default: "required",
            help: "SAN URI of a client certificate."),
        option(
            "certificates.*.app", kind: .text, default: "required",
            help: "The app that the certificate may access."),
        option(
            "certificates.*.scopes", kind: .texts, default: "required",
            help: "Scopes of the certificate."),
        option(
            "denied.*.jti", kind: .text, default: "none",
            help:
                "`jti` of a valid token to deny; its streams are closed. An entry has either `jti`, or "
                + "`app` and `sub`; names are compared byte by byte. "
                + "At most \(Denylist.entriesMax) entries."),
        option("denied.*.app", kind: .text, default: "none", help: "`app` of denied tokens."),
        option(
            "denied.*.sub", kind: .text, default: "none", help: "`sub` of denied tokens of `app`."),
        option(
            "denied.*.until", kind: .text, default: "never",
            help:
                "When the entry ends, RFC 3339, such as 2026-12-01T00:00:00Z: not before the tokens "
                + "expire."),
        option(
            "signing.algorithm", kind: .choice(["EdDSA", "ES256"]), default: "EdDSA",
            help: "Algorithm of new signing keys."),
        option(
            "signing.lifetime", kind: .duration, default: "15m",
            help: "Lifetime of a notification, from `iat` to `exp`."),
        option(
            "signing.publishLead", kind: .duration, default: "5m",
            help:
                "How long a new key is published before it signs. Verifiers may cache keys for as "
                + "long."),
        option(
            "retention.age", kind: .duration, default: "7d",
            help: "Maximum age of changes in the log."),
        option(
            "retention.changes", kind: limit, default: "1000000",
            help:
                "Maximum number of log entries. A client that resumes from before the log's start "
                + "rebuilds everything."),
        option(
            "retention.clientDays", kind: .number(1...3650), default: "90",
            help: "Days after which a client that was not seen is removed."),
        option(
            "streams.perClient", kind: .number(1...64), default: "4",
            help:
                "Maximum number of streams per client, and of polls that wait. A further one takes "
                + "the place of the client's oldest: the stream ends with a reconnection time of a "
                + "minute, the poll with 429."),
        option(
            "streams.stall", kind: .duration, default: "30s",
            help:
                "Timeout after which a stream that does not read is closed. Its client can resume "
                + "without loss."),
        option(
            "streams.heartbeat", kind: .duration, default: "15s",
            help:
                "Interval of the heartbeats of an idle stream, 1s to 30s. Each updates the client's "
                + "cursor, keeps proxies from closing the stream, and notices a vanished reader."),
        option(
            "streams.retry", kind: .duration, default: "2s",
            help: "Reconnection time sent to stream clients."),
        option(
            "limits.connections", kind: limit, default: "100000",
            help:
                "Maximum number of open connections, including event streams; new ones wait. A tenth, "
                + "at most 1,000, is reserved for other requests than event streams. Lowered at "
                + "start if the limit of open files is smaller."),
        option(
            "limits.connectionsPerAddress", kind: limit,
            default: "a tenth of limits.connections, at least 1000",
            help:
                "Maximum number of open connections from one IPv4 address or IPv6 /64; more are closed "
                + "immediately. Behind a load balancer that hides client addresses, set it to "
                + "limits.connections. Development mode has no such limit."),
        option(
            "limits.idleTimeout", kind: .duration, default: "75s",
            help:
                "Time between two requests after which a connection is closed. A balancer's own has to "
                + "be shorter: it could send a request just then. Google's is 600s, Envoy's 1h."),
        option(
            "limits.requestBytesInWork", kind: limit, default: "67108864",
            help:
                "Total bytes of request bodies received or processed, counted as they arrive; each uses "
                + "about 2.5 times its size in memory. One app may use four fifths. Requests beyond it "
                + "wait for up to 10 s, under way for up to 20 s more, then get 503; up to 8 under way "
                + "exceed it, so that bodies do not wait for each other."),
        option(
            "rates.address", kind: .rate, default: "20000/1s burst 40000",
            help:
                "Requests from one source address (IPv6: /64 network). The default is above what one "
                + "gateway accepts, because many clients or a busy backend may share an address."),
        option(
            "rates.app", kind: .rate, default: "20000/1s burst 40000",
            help:
                "Requests for one app; each 16 KiB of a body counts as one more. The default is above "
                + "what one gateway accepts, because competing apps are served in turn."),
        option(
            "rates.client", kind: .rate, default: "100/1s burst 1000",
            help: "Requests for one client; each 16 KiB of a body counts as one more."),
        option(
            "rates.refusedTokens", kind: .rate, default: "100/1s burst 2000",
            help:
                "Invalid tokens from one source address, those that name a trusted key counted apart; "
                + "beyond it only tokens of the other kind, or verified before, are accepted."),
        option(
            "rates.pushAddresses", kind: .rate, default: "64/1d burst 128",
            help:
                "New push addresses of one client: those that its registration before did not have. "
                + "Beyond it a registration with new ones gets 429. Counted since the start."),
        option(
            "limits.eventBytes", kind: limit, default: "65536", help: "Maximum bytes of an event."),
        option(
            "limits.postEvents", kind: limit, default: "1000",
            help: "Maximum number of events in a post."),
        option(
            "limits.postBytes", kind: limit, default: "8388608",
            help: "Maximum bytes of a post's body."),
        option(
            "limits.catalogBytes", kind: limit, default: "1048576",
            help: "Maximum bytes of a catalog."),
        option(
            "limits.catalogKinds", kind: limit, default: "500",
            help: "Maximum number of kinds in a catalog."),
        option(
            "limits.registrationBytes", kind: limit, default: "262144",
            help: "Maximum bytes of a registration."),
        option(
            "limits.registrationWidgets", kind: limit, default: "200",
            help: "Maximum number of widgets in a registration."),
        option(
            "limits.pushAddresses", kind: limit, default: "64",
            help:
                "Maximum number of different push addresses in a registration, those of its controls "
                + "included."),
        option(
            "limits.widgetKeys", kind: limit, default: "256",
            help: "Maximum number of keys a widget depends on."),
        option(
            "limits.clientKeys", kind: limit, default: "1000",
            help: "Maximum number of keys a client depends on."),
        option(
            "limits.changeKeys", kind: limit, default: "10000",
            help:
                "Maximum number of keys a change may invalidate, by all rules of a catalog; 20 times "
                + "as many for a post."),
        option(
            "limits.stringBytes", kind: limit, default: "256",
            help: "Maximum bytes of names and values."),
        option(
            "limits.versionKeys", kind: limit, default: "1000000",
            help:
                "Maximum number of keys whose versions are in memory, per app; 20 bytes each, shared by "
                + "all event loops."),
        option(
            "limits.clientsPerApp", kind: limit, default: "1000000",
            help:
                "Maximum number of registered clients per app. New clients beyond it get 422; existing "
                + "ones can always register again."),
        option(
            "limits.logBytesPerApp", kind: .number(1...1_000_000_000_000_000),
            default: "4294967296",
            help:
                "Maximum bytes of one app's changes and catalogs in the log. Posts and catalogs beyond "
                + "it get 429 until retention has freed space. The default is far above what small "
                + "changes use (a million of 200 bytes take 0.2 GB) and holds a full log of "
                + "`retention.changes` at 4 KiB each; events of 64 KiB could take 64 GB."),
        option(
            "log.level",
            kind: .choice(["trace", "debug", "info", "notice", "warning", "error", "critical"]),
            default: "info",
            help: "Minimum level of log messages, on standard error."),
        option(
            "log.levels", kind: .texts, default: "none",
            help:
                "Levels for single loggers, such as `timeline-gateway.push=debug`, or for a field's "
                + "value, such as `client:my-iphone=trace`."),
        option(
            "log.format", kind: .choice(LogFormat.allCases.map(\.rawValue)), default: "logfmt",
            help: "Format of log lines."),
    ]

    /// The option for `key`, in which numbers stand for list indices.
    static func option(for key: String) -> ConfigurationOption? {
        let pattern = key.split(separator: ".", omittingEmptySubsequences: false)
            .map { Int($0) != nil ? "*" : String($0) }.joined(separator: ".")
        return options.first { $0.key == pattern }
    }
}
