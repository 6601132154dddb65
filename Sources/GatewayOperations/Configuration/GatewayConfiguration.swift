import CLinux
import Foundation
import GatewayCore
import GatewaySigning
import GatewayTLS
import Logging
import NIOCore
import WidgetModel

/// The complete, validated configuration of a gateway. ``ConfigurationSchema`` explains it.
package struct GatewayConfiguration: Sendable {
    /// The source of the certificate and key.
    package enum Certificates: Sendable {
        /// Files maintained by an operator.
        case files(certificate: String, key: String)
        /// Created in the data directory: development mode.
        case development
    }

    /// The defaults of the options.
    static let standard = GatewayConfiguration()

    package var data = ""
    package var listen = Address(host: "127.0.0.1", port: 8443)
    package var admin = Address(host: "127.0.0.1", port: 9464)
    package var probes: Address?
    /// How the log is shared with other nodes; `nil` if it lies in ``data``.
    package var cluster: ClusterSettings?
    /// The public URL; `nil` for that of `listen`.
    package var publicURL: String?
    package var threads = System.cores
    package var certificates = Certificates.development
    package var clientCA: String?
    package var clientCRL: String?
    package var demandsClientCertificate = false
    package var proxies: TrustedProxies?
    /// The origins of the web pages that may read what clients are answered.
    package var corsOrigins: [String] = []
    package var issuers: [IssuerSettings] = []
    package var issuerKeyRanges: [AddressRange] = []
    /// The file with the certificates to trust at the URLs of keys; `nil` for the system's.
    package var issuerKeyTrust: String?
    package var certificateGrants: [CertificateGrant] = []
    package var denied = Denylist()
    package var localIssuer = false
    package var algorithm = SigningAlgorithm.edDSA
    /// In seconds.
    package var notificationLifetime: Int64 = 900
    /// In seconds.
    package var publishLead: Int64 = 300
    package var retentionSeconds: Int64 = 7 * 86_400
    package var retentionChanges: UInt64 = 1_000_000
    package var clientDays = 90
    package var streamsPerClient = 4
    package var connectionsMax = 100_000
    /// The maximum number of open connections from one source address; `nil` for no separate limit.
    package var connectionsPerAddressMax: Int?
    /// The maximum number of open connections to the admin port.
    package var adminConnectionsMax = 64
    /// The maximum number of open connections to the probe port.
    package var probeConnectionsMax = 64
    /// The maximum number of event streams of all clients; the other connections are left for
    /// requests.
    package var streamsMax: Int { connectionsMax - min(1_000, connectionsMax / 10) }
    package var idleSeconds: Int64 = 75
    package var requestBytesInWork = 64 << 20
    package var rates = RateLimits()
    package var streams = StreamSettings()
    package var limits = Limits()
    package var quota = AppQuota()
    package var coreLimits = CoreLimits()
    package var push = PushConfiguration()
    /// The configuration of tracing; `nil` if nothing is traced.
    package var tracing: TracingConfiguration?
    package var logLevels = LogLevels()
    package var logFormat = LogFormat.logfmt
    /// The text of every option that is set.
    package fileprivate(set) var texts: [String: String] = [:]
    /// Settings without an effect, one line for each.
    package fileprivate(set) var notices: [String] = []
    package private(set) var file: String?
    /// The state of each file just before it was read or, if it is read later, named.
    package private(set) var filesRead: [String: FileWatch.Print?] = [:]
    /// Whether the gateway runs in development mode, without configuration: its own certificates
    /// and issuer, loopback only.
    package var isDevelopment = false

    /// The development mode: everything in `data`, on loopback only. Throws ``Faults`` if an
    /// address is not loopback.
    package static func development(
        data: String, listen: Address, admin: Address, probes: Address? = nil
    ) throws(Faults) -> GatewayConfiguration {
        var faults = Faults()
        let addresses: [(String, Address?)] = [
            ("listen", listen), ("admin", admin), ("probes", probes),
        ]
        for case (let key, let address?) in addresses where !address.isLoopback {
            faults.add(
                key,
                "\(address) is reachable from other machines; without a configuration file the "
                    + "gateway runs in development mode, which is limited to loopback")
        }
        guard faults.isEmpty else { throw faults }
        var configuration = GatewayConfiguration()
        (configuration.data, configuration.listen) = (data, listen)
        (configuration.admin, configuration.probes) = (admin, probes)
        (configuration.localIssuer, configuration.isDevelopment) = (true, true)
        return configuration
    }

    /// Reads the configuration from all its sources; that of development mode if there is none.
    ///
    /// - Parameters:
    ///   - file: A YAML or JSON file, if one was named.
    ///   - flags: The values of the command line, by key.
    ///   - environment: The process's environment.
    ///   - received: A document to read instead of the file.
    ///   - checksFiles, alsoChecks: As for ``init(_:checksFiles:alsoChecks:)``.
    /// - Throws: ``Faults`` with all errors.
    package static func read(
        file: String?, flags: [String: String], environment: [String: String],
        received: ReceivedConfiguration? = nil, checksFiles: Bool = false,
        alsoChecks: (GatewayConfiguration) throws(Faults) -> Void = { _ in }
    ) throws(Faults) -> GatewayConfiguration {
        var layers = ConfigurationLayers(
            file: file, flags: flags, environment: environment, received: received)
        if file != nil || received != nil || layers.isConfigured {
            return try GatewayConfiguration(
                layers, checksFiles: checksFiles, alsoChecks: alsoChecks)
        }
        return try layers.development()
    }

    /// Reads a configuration.
    ///
    /// - Parameters:
    ///   - checksFiles: Whether the files that it names are read, too, and checked for what would
    ///     only be noticed later, such as an expired certificate.
    ///   - alsoChecks: Checks, together with the files, what only targets above this one can read.
    /// - Throws: ``Faults`` with all errors.
    package init(
        _ layers: ConfigurationLayers, checksFiles: Bool = false,
        alsoChecks: (GatewayConfiguration) throws(Faults) -> Void = { _ in }
    ) throws(Faults) {
        var layers = layers
        // Of a document that is not read, every required option would be missing.
        guard !layers.isUnreadable else { throw layers.faults }
        // Before any of these files is read.
        filesRead = layers.filesRead
        cluster = ClusterSettings(&layers)
        data = layers.required("data")
        listen = layers.address("listen") ?? listen
        admin = layers.address("admin") ?? admin
        probes = layers.address("probes")
        publicURL = layers.text("publicURL")
        if let publicURL, !publicURL.hasPrefix("https://") {
            layers.fault("publicURL", "must be an https URL")
        }
        threads = layers.number("threads") ?? threads
        certificates = .files(
            certificate: layers.required("tls.certificate"), key: layers.required("tls.key"))
        clientCA = layers.text("tls.clientCA")
        let mode = layers.text("tls.clientCertificates") ?? "none"
        demandsClientCertificate = mode == "required"
        if mode != "none", clientCA == nil {
            layers.fault("tls.clientCA", "is required if tls.clientCertificates is not none")
        }
        clientCRL = layers.text("tls.clientCRL")
        if clientCRL != nil, clientCA == nil {
            layers.fault("tls.clientCRL", "has no effect without tls.clientCA")
        }
        if mode == "none" { (clientCA, clientCRL) = (nil, nil) }
        localIssuer = layers.flag("localIssuer") ?? false
        proxies = Self.proxies(&layers)
        issuers = Self.issuers(&layers)
        issuerKeyRanges = Self.ranges(&layers, "issuerKeys.allowedRanges")
        issuerKeyTrust = layers.text("issuerKeys.ca")
        certificateGrants = Self.certificateGrants(&layers)
        denied = Denylist(&layers)
        algorithm =
            layers.text("signing.algorithm").flatMap(SigningAlgorithm.init(rawValue:)) ?? .edDSA
        read(ConfigurationSchema.general, &layers)
        readPush(&layers)
        tracing = TracingConfiguration(&layers)
        read(ConfigurationSchema.sizes, &layers)
        read(ConfigurationSchema.load, &layers)
        connectionsPerAddressMax = connectionsPerAddressMax ?? max(1_000, connectionsMax / 10)
        // A fault of the first, limits.versionKeys, is listed last.
        read(ConfigurationSchema.usage.dropFirst(), &layers)
        read(ConfigurationSchema.usage.prefix(1), &layers)
        logLevels = layers.logLevels
        logFormat = layers.logFormat
        if issuers.isEmpty, !localIssuer, certificateGrants.isEmpty,
            layers.places(of: "issuers").isEmpty
        {
            layers.fault("issuers", "must name at least one issuer, or set localIssuer: true")
        }
        // The entries are kept in ``denied``: as options they would be numerous, and each option is
        // checked whenever files are.
        texts = layers.texts.filter { !$0.key.hasPrefix("denied.") }
        if denied.count > 0 { texts["denied"] = "\(denied.count) entries" }
        file = layers.file
        notices = layers.openTelemetry.notices
        if localIssuer, !listen.isLoopback {
            notices.append(
                "localIssuer: whoever can read \(data) can issue tokens for every app, and \(listen) "
                    + "is reachable from other machines")
        }
        checkPorts(&layers)
        if cluster != nil, publicURL == nil {
            layers.fault("publicURL", "is required with cluster.url: all nodes have the same")
        }
        if checksFiles { check(&layers, alsoChecks) }
        guard layers.faults.isEmpty else { throw layers.faults }
    }

    private init() {}

    /// Reads options that set one property each, in this order, which is that of their faults.
    mutating func read(
        _ options: some Sequence<ConfigurationOption>, _ layers: inout ConfigurationLayers
    ) {
        for option in options { option.read?(&layers, &self) }
    }

    private static func scopes(
        _ layers: inout ConfigurationLayers, _ key: String
    ) -> Set<Scope> {
        let names = layers.texts(key) ?? []
        if names.isEmpty { _ = layers.required(key) }
        for name in names where Scope(rawValue: name) == nil {
            let known = Scope.allCases.map(\.rawValue)
            let hint = name.nearest(of: known).map { "; did you mean \($0)?" } ?? ""
            layers.fault(key, "`\(name)` is not a scope\(hint)")
        }
        return Set(names.compactMap(Scope.init(rawValue:)))
    }

    private static func issuers(_ layers: inout ConfigurationLayers) -> [IssuerSettings] {
        layers.places(of: "issuers").compactMap { place in
            let prefix = "issuers.\(place)"
            let iss = layers.required("\(prefix).iss")
            let apps = layers.texts("\(prefix).apps") ?? []
            if apps.isEmpty { _ = layers.required("\(prefix).apps") }
            let scopes = scopes(&layers, "\(prefix).scopes")
            let path = layers.required("\(prefix).keys")
            guard !path.isEmpty else { return nil }
            guard let keys = keys(path, &layers, at: "\(prefix).keys") else { return nil }
            let isRepeated = layers.places(of: "issuers").prefix { $0 < place }.contains {
                layers.text(raw: "issuers.\($0).iss") == iss
                    && layers.text(raw: "issuers.\($0).keys") == path
            }
            if isRepeated {
                layers.fault(
                    "\(prefix).keys", "repeats an earlier entry with the same iss and keys")
            }
            return IssuerSettings(
                iss: iss, apps: apps.contains("*") ? .any : .only(Set(apps)), scopes: scopes,
                keys: keys)
        }
    }

    private static func keys(
        _ source: String, _ layers: inout ConfigurationLayers, at key: String
    ) -> IssuerSettings.Keys? {
        if source.contains("://") {
            do throws(WebhookEndpoint.Fault) {
                return .url(try WebhookEndpoint(source))
            } catch {
                layers.fault(key, WebhookObjection.url(error).message())
                return nil
            }
        }
        guard layers.mayRead(source) else { return .set(JWKSet()) }
        guard let data = ConfigurationFile.contents(of: source) else {
            layers.fault(key, "\(source) cannot be read")
            return nil
        }
        if let key = try? VerificationKey(pem: Array(data)) { return .set(JWKSet([key])) }
        let parsed = try? JWKSet(parsing: Array(data))
        guard let set = parsed, !set.keys.isEmpty else {
            let reasons = parsed?.skipped ?? []
            layers.fault(
                key,
                "\(source) contains no public key: \(VerificationKey.kinds)"
                    + (reasons.isEmpty ? "" : " (\(reasons.joined(separator: "; ")))"))
            return nil
        }
        if set.repeatsKids {
            layers.fault(key, "\(source) has several keys with the same kid; tokens name only one")
        }
        return .set(set)
    }

    private static func ranges(
        _ layers: inout ConfigurationLayers, _ key: String
    ) -> [AddressRange] {
        (layers.texts(key) ?? []).compactMap { text in
            let range = AddressRange(text)
            if range == nil {
                layers.fault(
                    key, "`\(text)` is not an address range such as 10.0.0.0/8 or fd00::/8")
            }
            return range
        }
    }

    private static func proxies(_ layers: inout ConfigurationLayers) -> TrustedProxies? {
        let ranges = ranges(&layers, "proxies.trusted")
        let name = layers.text("proxies.protocol")
        guard layers.text(raw: "proxies.trusted") != nil else {
            if name != nil {
                layers.fault("proxies.trusted", "is required if proxies.protocol is set")
            }
            return nil
        }
        guard let proxyProtocol = name.flatMap(ProxyProtocol.init(rawValue:)) else {
            if layers.text(raw: "proxies.protocol") == nil {
                layers.fault("proxies.protocol", "is required if proxies.trusted is set")
            }
            return nil
        }
        return TrustedProxies(ranges, by: proxyProtocol)
    }

    private static func certificateGrants(
        _ layers: inout ConfigurationLayers
    ) -> [CertificateGrant] {
        layers.places(of: "certificates").map { place in
            let prefix = "certificates.\(place)"
            return CertificateGrant(
                uri: layers.required("\(prefix).uri"), app: layers.required("\(prefix).app"),
                scopes: scopes(&layers, "\(prefix).scopes"))
        }
    }

    /// Rejects ports that have the address of another one.
    private func checkPorts(_ layers: inout ConfigurationLayers) {
        let ports: [(option: String, address: Address?)] = [
            ("listen", listen), ("admin", admin), ("probes", probes),
            ("cluster.node", cluster?.node),
        ]
        for (index, port) in ports.enumerated() {
            guard let address = port.address, address.port != 0,
                let same = ports[..<index].first(where: { $0.address == address })
            else { continue }
            layers.fault(port.option, "\(address) is the address of `\(same.option)`, too")
        }
    }

    /// Adds the faults of files and directories to those of the document; an option with a fault
    /// already gets no other.
    private func check(
        _ layers: inout ConfigurationLayers,
        _ alsoChecks: (GatewayConfiguration) throws(Faults) -> Void
    ) {
        var found = Faults()
        do {
            try checkFiles()
        } catch let faults as Faults {
            found = faults
        } catch {
            found.add("", "\(error)")
        }
        do throws(Faults) { try alsoChecks(self) } catch { found.add(error, under: "") }
        let now = Date()
        if let context = try? tlsContext(now: Int64(now.timeIntervalSince1970)) {
            if context.notAfter < now {
                found.add(
                    "tls.certificate",
                    "has expired on \(context.notAfter.ISO8601Format()); clients will not connect")
            }
            if let host = publicURL.flatMap({ URL(string: $0)?.host() }),
                !context.isCertificate(of: host)
            {
                found.add("tls.certificate", "is not valid for \(host), the host of publicURL")
            }
        }
        if let reason = Self.unusable(directory: data) { found.add("data", reason) }
        let known = Set(layers.faults.list.map(\.place))
        for fault in found.list where !known.contains(fault.place) {
            layers.fault(fault.place, fault.message)
        }
    }

    /// Returns why a directory can neither be used nor made.
    private static func unusable(directory: String) -> String? {
        var url = URL(filePath: directory).standardizedFileURL
        var isDirectory: ObjCBool = false
        while !FileManager.default.fileExists(atPath: url.path, isDirectory: &isDirectory) {
            guard url.path != "/" else { return nil }
            url.deleteLastPathComponent()
        }
        guard isDirectory.boolValue else { return "\(url.path) is not a directory" }
        guard FileManager.default.isWritableFile(atPath: url.path) else {
            return "\(url.path) is not writable"
        }
        return nil
    }

    /// Reads the configured files, as `serve` would. Throws ``Faults`` with every option whose file
    /// is invalid.
    package func checkFiles() throws {
        var faults = Faults()
        if case .files = certificates {
            do {
                _ = try tlsContext(now: Int64(Date().timeIntervalSince1970))
            } catch let found as Faults {
                faults.add(found, under: "")
            }
        }
        do throws(Faults) { _ = try PushFiles(push) } catch { faults.add(error, under: "") }
        if let issuerKeyTrust {
            do throws(TLSError) {
                _ = try PEMSource.file(issuerKeyTrust).certificateText()
            } catch {
                faults.add("issuerKeys.ca", error.message)
            }
        }
        do throws(Faults) { try tracing?.checkFiles() } catch { faults.add(error, under: "") }
        guard faults.isEmpty else { throw faults }
    }

    /// The files that options name, by option.
    var files: [String: String] { ConfigurationLayers.files(texts) }

    /// The files that make up the configuration, and the key lists in the data directory.
    package var watchedFiles: [String] {
        (file.map { [$0] } ?? []) + files.values
            + KeyRingName.allCases.map { "\(data)/\($0.rawValue)/ring.json" }
    }

    /// The public URL when the gateway listens on `port`.
    package func url(port: Int) -> String {
        publicURL ?? "https://\(Address(host: listen.host, port: port))"
    }
}

/// Properties of the machine.
enum System {
    /// The number of cores that this process may use, by its affinity and by its control group's
    /// quota: as many event loops make sense.
    static var cores: Int {
        var mask = [UInt8](repeating: 0, count: 1024)
        let filled = gateway_get_affinity(&mask, UInt(mask.count))
        let allowed = mask.prefix(max(0, filled)).reduce(0) { $0 + $1.nonzeroBitCount }
        let quota = NIOCore.System.coreCount
        return max(1, allowed > 0 ? min(allowed, quota) : quota)
    }
}

extension ConfigurationLayers {
    /// Whether a TLS certificate or key, or a cluster, is set, which development mode does not use.
    fileprivate var isConfigured: Bool {
        ["tls.certificate", "tls.key", "cluster.url"].contains { text(raw: $0) != nil }
    }

    /// Creates the development mode with those flags and environment variables that it supports.
    /// Throws ``Faults``.
    package mutating func development() throws(Faults) -> GatewayConfiguration {
        let standard = GatewayConfiguration.standard
        let (listen, admin) = (address("listen"), address("admin"))
        let (levels, format) = (logLevels, logFormat)
        let (threads, tracing) = (number("threads"), TracingConfiguration(&self))
        let corsOrigins = origins("cors.origins")
        guard faults.isEmpty else { throw faults }
        var configuration = try GatewayConfiguration.development(
            data: text("data") ?? "timeline-gateway-data", listen: listen ?? standard.listen,
            admin: admin ?? standard.admin, probes: address("probes"))
        configuration.tracing = tracing
        configuration.logLevels = levels
        configuration.logFormat = format
        configuration.texts = texts
        configuration.notices = openTelemetry.notices
        if let threads { configuration.threads = threads }
        if let corsOrigins { configuration.corsOrigins = corsOrigins }
        return configuration
    }

    fileprivate var logLevels: LogLevels {
        mutating get {
            let standard = text("log.level").flatMap(Logger.Level.init(rawValue:)) ?? .info
            do throws(LogLevels.Unreadable) {
                return try LogLevels(standard: standard, rules: texts("log.levels") ?? [])
            } catch {
                fault("log.levels", error.message)
                return LogLevels(standard)
            }
        }
    }

    fileprivate var logFormat: LogFormat {
        mutating get { text("log.format").flatMap(LogFormat.init(rawValue:)) ?? .logfmt }
    }
}
