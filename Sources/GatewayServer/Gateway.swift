import CoreMetrics
import Foundation
import GatewayCore
import GatewayDelivery
import GatewaySigning
import GatewayStorage
import GatewayTLS
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import OpenTelemetry
import ServiceLifecycle
import Synchronization
import UnixSignals
import WidgetModel

/// A whole gateway, built once from top to bottom.
package struct Gateway: Sendable {
    private let configuration: GatewayConfiguration
    private let current: CurrentConfiguration
    private let reload: ConfigurationReload
    private let logger: Logger
    private let group: MultiThreadedEventLoopGroup
    /// Operators and probes are answered by a thread of their own, whatever the others are busy with.
    private let operatorGroup = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    /// What is pushed is decided on a thread of its own; `nil` where nothing ever is.
    private let pushGroup: MultiThreadedEventLoopGroup?
    private let senders: PushSenders
    private let store: SQLiteStore
    private let sequencer: Sequencer
    private let loops: ShardLoops
    private let metrics: GatewayMetrics
    private let press: NotificationPress
    private let keys: KeyService
    private let tlsSettings: TLSServerSettings
    private let verifier: CachedTokenVerifier
    private let audiences: Set<String>
    private let identity: TLSIdentity
    private let authorizer: Authorizer
    private let desk: CursorDesk
    /// `nil` where nothing is traced.
    private let tracing: GatewayTracing?
    private let readiness = Readiness()

    /// Opens the data directory, replays the log and gets everything ready to serve.
    ///
    /// - Throws: ``Faults``, `StoreError`, `SigningError` or `TLSError`, each saying what is wrong
    ///   and where.
    /// - Parameter read: Reads the configuration again, for a reload.
    package init(
        _ configuration: GatewayConfiguration, log: GatewayLog,
        read: @escaping ConfigurationReload.Read
    ) throws {
        var configuration = configuration
        configuration.listen = try configuration.listen.withPort()
        self.configuration = configuration
        current = CurrentConfiguration(configuration)
        let logger = Logger(label: "timeline-gateway")
        self.logger = logger
        let pushFiles = try PushFiles(configuration.push)
        tracing = try configuration.tracing.map { try GatewayTracing($0) }
        let directory = DataDirectory(configuration.data)
        try directory.create()
        let metrics = GatewayMetrics()
        self.metrics = metrics
        store = try SQLiteStore(
            directory: configuration.data,
            observer: { figures in
                metrics.commitSeconds.record(figures.seconds)
                metrics.commitJobs.record(Double(figures.jobs))
            })
        let now = Int64(Date().timeIntervalSince1970)
        let timing = KeyRing.Timing(
            publishLead: configuration.publishLead,
            signatureLifetime: configuration.notificationLifetime)
        let urls = try directory.note(
            url: configuration.url(port: configuration.listen.port), timing: timing)
        let url = configuration.publicURL ?? urls.first ?? ""
        audiences = Set(
            configuration.isDevelopment
                ? urls + ["https://localhost:\(configuration.listen.port)"]
                : [configuration.url(port: configuration.listen.port)])
        keys = try KeyService(
            data: configuration.data, algorithm: configuration.algorithm, timing: timing,
            hasLocalIssuer: configuration.localIssuer, hasWebhooks: configuration.push.hasWebhooks,
            audience: url, now: now)
        identity = TLSIdentity(try Self.context(configuration, now: now))
        verifier = CachedTokenVerifier(
            TokenVerifier(
                policy: Self.policy(configuration, keys, audiences), limits: configuration.limits))
        press = NotificationPress(
            issuer: url, lifetime: configuration.notificationLifetime,
            signer: keys.notificationSigner, nonce: UInt64.random(in: .min ... .max))
        group = MultiThreadedEventLoopGroup(numberOfThreads: configuration.threads)
        pushGroup =
            configuration.push.isActive || !configuration.isDevelopment
            ? MultiThreadedEventLoopGroup(numberOfThreads: 1) : nil
        var tlsSettings = TLSServerSettings()
        // An idle peer that does not read says no goodbye; stopping does not wait long for it.
        tlsSettings.closeTimeout = .seconds(2)
        self.tlsSettings = tlsSettings
        let built = try LogReplay.build(
            configuration, store, press, metrics, tlsSettings, Array(group.makeIterator()),
            pushGroup?.next(), .system, logger, tracing: tracing)
        sequencer = built.sequencer
        loops = built.loops
        desk = built.desk
        let desk = desk
        senders = try PushSenders(
            configuration.push, pushFiles, store: store,
            WebhookPushes.Content(
                notification: { [press] order throws(SigningError) in
                    try press.notification(
                        app: order.client.app, content: order.content, causeTime: nil,
                        now: desk.wallSeconds())
                }, cursor: { desk.text($0) }, signer: { [keys] in keys.webhookSigner },
                wallSeconds: { desk.wallSeconds() }))
        let grants = CertificateGrants(configuration.certificateGrants)
        authorizer = Authorizer(
            verifier: verifier, grants: grants, now: { desk.wallSeconds() })
        reload = ConfigurationReload(
            current, read: read,
            ConfigurationReload.Parts(
                identity: identity, verifier: verifier, keys: keys, press: press, grants: grants,
                audiences: audiences, log: log, senders: senders, push: built.push),
            metrics, logger, now: { desk.wallSeconds() })
    }

    /// The TLS context a configuration asks for.
    ///
    /// - Throws: ``Faults`` that name the option whose file is wrong.
    static func context(
        _ configuration: GatewayConfiguration, now: Int64
    ) throws -> TLSContext {
        var settings = TLSContextSettings()
        if let clientCA = configuration.clientCA {
            settings.clientCertificates =
                configuration.demandsClientCertificate
                ? .required(authorities: .file(clientCA)) : .optional(authorities: .file(clientCA))
        }
        let (certificate, key): (String, String)
        switch configuration.certificates {
        case .files(let certificateFile, let keyFile):
            (certificate, key) = (certificateFile, keyFile)
        case .development:
            let made = try DevelopmentCertificates.ensure(in: configuration.data, now: now)
            (certificate, key) = (made.certificate, made.key)
        }
        do throws(TLSError) {
            return try TLSContext(
                certificateChain: .file(certificate), privateKey: .file(key), settings: settings)
        } catch {
            let option =
                error.message.contains(key)
                ? "tls.key"
                : configuration.clientCA.map(error.message.contains) ?? false
                    ? "tls.clientCA" : "tls.certificate"
            throw Faults(option, error.message)
        }
    }

    static func policy(
        _ configuration: GatewayConfiguration, _ keys: KeyService, _ audiences: Set<String>
    ) -> TokenPolicy {
        var issuers = configuration.issuers
        if let local = keys.trustedLocalIssuer { issuers.append(local) }
        return TokenPolicy(issuers: issuers, audiences: audiences)
    }

    /// Serves until it is told to stop, then drains.
    ///
    /// - Parameter onReady: Called with the TLS port's URL once connections are accepted.
    /// - Throws: When a port cannot be opened.
    package func run(onReady: @escaping @Sendable (String) -> Void) async throws {
        let admission = StreamAdmission(
            authorizer: authorizer, registry: sequencer.registry, desk: desk, loops: loops,
            sequencer: sequencer, streamSettings: configuration.streams,
            streamsMax: configuration.connectionsMax)
        let explainer = Explainer(sequencer) { [current] in current.value.push.terms }
        let routes = GatewayRoutes(
            admission: admission, sequencer: sequencer, authorizer: authorizer, press: press,
            metrics: metrics, desk: desk, limits: configuration.limits, keys: keys,
            registrationDays: configuration.clientDays, reload: reload, explainer: explainer,
            tracing: tracing)
        let unconfirmed = UnconfirmedSweep(sequencer, loops)
        let overview = OverviewDesk(
            MetricsPage(
                metrics: metrics, sequencer: sequencer, loops: loops, press: press, keys: keys,
                tlsCounters: tlsSettings.counters,
                certificateEnds: { [identity] in identity.current.notAfter },
                pushCertificateEnds: { [senders] in senders.certificateEnds },
                unconfirmed: unconfirmed,
                spans: { [tracing] in tracing?.counts ?? SpanBatcher.Counts() }),
            readiness)
        let admin = AdminRoutes(
            desk: overview, system: SystemPage(current: current, page: overview.page),
            apps: AppsPage(desk: overview, explainer: explainer))
        let (identity, readiness, listen) = (identity, readiness, configuration.listen)
        let ports = OpenPorts(configuration.probes == nil ? 2 : 3) { port in
            readiness.set(serving: true)
            onReady("https://\(Address(host: listen.host, port: port))")
        }
        let quiet = Logger(label: LogLevels.requests)
        let table = routes.table
        let setup = GatewayChannel(
            respond: { [quiet, desk] request, channel in
                await Self.answer(request, channel, table, desk, quiet)
            }, tlsSettings: tlsSettings, settings: ConnectionSettings(), admission: admission,
            open: OpenChannels())
        let listener = Listener(
            host: listen.host, port: listen.port, connectionsMax: configuration.connectionsMax,
            threads: configuration.threads, identity: identity, setup: setup,
            onServing: ports.openedTLS)
        let adminService = adminService(admin, routes.adminTable, ports, quiet)
        let probes = configuration.probes.map {
            plain(admin.probes, at: $0, ports, quiet)
        }
        for loop in loops.all { loop.start() }
        tracing?.start()
        startPushing()
        let upkeep = Upkeep(
            configuration: current, sequencer: sequencer, keys: keys, press: press,
            logger: logger
        ) { [verifier, current, keys, audiences] in
            verifier.replace(
                with: TokenVerifier(
                    policy: Self.policy(current.value, keys, audiences),
                    limits: current.value.limits))
        }
        let watch = ConfigurationWatch(reload: reload, current: current)
        let drain = StreamDrain(loops: loops, readiness: readiness)
        var group = ServiceGroupConfiguration(
            services: [overview, adminService, upkeep, listener, drain, watch, unconfirmed]
                + (probes.map { [$0] } ?? []),
            gracefulShutdownSignals: [.sigterm, .sigint], logger: quiet)
        // A peer must not be able to keep the gateway from stopping.
        group.maximumGracefulShutdownDuration = .seconds(20)
        let services = ServiceGroup(configuration: group)
        do {
            try await services.run()
        } catch {
            try? await close()
            guard !readiness.wasServing else { throw error }
            throw Faults(
                "listen",
                "\(configuration.listen) or admin \(configuration.admin) cannot be opened: \(error)"
            )
        }
        try await close()
    }

    /// Lets the routes answer one request.
    private static func answer(
        _ request: GatewayRequest, _ channel: any Channel, _ table: RouteTable, _ desk: CursorDesk,
        _ logger: Logger
    ) async -> GatewayAnswer? {
        var answer = try? await table.respond(to: request, on: channel, logger: logger)
        answer?.head.headers.add(name: FieldName.date, value: desk.date())
        return answer
    }

    /// The admin port: plain on loopback, anywhere else with TLS and for operators alone.
    private func adminService(
        _ admin: AdminRoutes, _ table: RouteTable, _ ports: OpenPorts, _ logger: Logger
    ) -> any Service {
        let address = configuration.admin
        let responder = AdminResponder(
            own: admin.table(beside: table, isLoopback: address.isLoopback),
            access: AdminAccess(isLoopback: address.isLoopback), authorizer: authorizer,
            table: table, bodyBytesMax: configuration.limits.postBytesMax)
        guard !address.isLoopback else { return plain(responder, at: address, ports, logger) }
        let http = HTTP1Channel { [desk] request, writer, channel in
            let context = AdminContext(
                source: ApplicationRequestContextSource(channel: channel, logger: logger))
            var response = try await responder.respond(to: request, context: context)
            response.headers[.date] = desk.date()
            try await writer.write(response: response.head, body: response.body)
        }
        var settings = tlsSettings
        settings.offersHTTP2 = false
        return AdminListener(
            address: address, identity: identity, settings: settings,
            loop: operatorGroup.next(), http: http, logger: logger,
            onServing: { ports.openedPlain() })
    }

    /// A port without TLS.
    private func plain(
        _ responder: some HTTPResponder<AdminContext>, at address: Address, _ ports: OpenPorts,
        _ logger: Logger
    ) -> some Service {
        PlainPort(
            application: Application(
                responder: responder,
                configuration: .init(address: .hostname(address.host, port: address.port)),
                onServerRunning: { _ in ports.openedPlain() },
                eventLoopGroupProvider: .shared(operatorGroup), logger: logger),
            loop: operatorGroup.next())
    }

    private func startPushing() {
        sequencer.push?.start(
            PushLoop.Surroundings(
                store: store,
                drop: { [sequencer] key, address in try await sequencer.drop(address, of: key) },
                sender: { [senders] in senders.sender(of: $0) },
                acceptTime: { [sequencer] in sequencer.acceptTimes.time(of: $0) }))
    }

    private func close() async throws {
        await sequencer.push?.stop { await senders.drain() }
        // After whatever may have ended a span.
        await tracing?.stop()
        try await store.close()
        for shard in loops.all { try? await shard.loop.submit { shard.stop() }.get() }
        try await group.shutdownGracefully()
        try await pushGroup?.shutdownGracefully()
        try await operatorGroup.shutdownGracefully()
    }
}

/// Waits for every port to be open.
private final class OpenPorts: Sendable {
    private let state: Mutex<(waiting: Int, port: Int)>
    private let onAll: @Sendable (_ port: Int) -> Void

    /// - Parameter onAll: Called once, with the TLS port, when so many ports are open.
    init(_ count: Int, onAll: @escaping @Sendable (_ port: Int) -> Void) {
        state = Mutex((count, 0))
        self.onAll = onAll
    }

    func openedTLS(_ port: Int) { opened(port) }
    func openedPlain() { opened(nil) }

    private func opened(_ tlsPort: Int?) {
        let port = state.withLock { state -> Int? in
            if let tlsPort { state.port = tlsPort }
            state.waiting -= 1
            return state.waiting == 0 ? state.port : nil
        }
        if let port { onAll(port) }
    }
}

/// Ends the streams when the gateway stops, before its connections are closed.
private struct StreamDrain: Service {
    let loops: ShardLoops
    let readiness: Readiness

    func run() async throws {
        try? await gracefulShutdown()
        readiness.set(serving: false)
        for shard in loops.all {
            try? await shard.loop.flatSubmit { shard.drain() }.get()
        }
    }
}
