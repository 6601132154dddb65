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
    /// Threads that answer the requests of the TLS port.
    private let requests: LaneExecutor
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
    private let identity: TLSIdentity
    private let authorizer: Authorizer
    private let access: AccessControl
    private let desk: CursorDesk
    /// `nil` where nothing is traced.
    private let tracing: GatewayTracing?
    private let readiness = Readiness()

    /// Opens the data directory, replays the log and gets everything ready to serve.
    ///
    /// - Throws: ``Faults``, ``DataDirectoryLoss``, `StoreError`, `SigningError` or `TLSError`, each saying what is wrong
    ///   and where.
    /// - Parameters:
    ///   - acceptsLoss: Whether to go on without parts of the data directory that are gone.
    ///   - read: Reads the configuration again, for a reload.
    package init(
        _ configuration: GatewayConfiguration, log: GatewayLog, acceptsLoss: Bool = false,
        read: @escaping ConfigurationReload.Read
    ) throws {
        let logger = Logger(label: "timeline-gateway")
        self.logger = logger
        var configuration = configuration
        try Self.fit(&configuration, logger)
        configuration.listen = try configuration.listen.withPort()
        self.configuration = configuration
        current = CurrentConfiguration(configuration)
        let pushFiles = try PushFiles(configuration.push)
        tracing = try configuration.tracing.map { try GatewayTracing($0) }
        let directory = DataDirectory(configuration.data)
        try directory.create()
        let metrics = GatewayMetrics()
        self.metrics = metrics
        let checks = StartChecks(configuration: configuration, acceptsLoss: acceptsLoss) { part in
            logger.warning("going on without a part that is gone", metadata: ["part": "\(part)"])
        }
        do {
            store = try SQLiteStore(
                directory: configuration.data, opening: checks.database(),
                observer: { [turn = metrics.turns(of: .writer)] figures in
                    turn.record(nanoseconds: figures.longestJobNanoseconds)
                    metrics.commitSeconds.record(figures.seconds)
                    metrics.commitJobs.record(Double(figures.jobs))
                })
        } catch StoreError.missing {
            throw checks.loss([.database])
        }
        try checks.rings(knownTo: store)
        let now = Int64(Date().timeIntervalSince1970)
        let timing = KeyRing.Timing(
            publishLead: configuration.publishLead,
            signatureLifetime: configuration.notificationLifetime)
        let urls = try directory.note(
            url: configuration.url(port: configuration.listen.port), timing: timing)
        let url = configuration.publicURL ?? urls.first ?? ""
        let audiences = Set(
            configuration.isDevelopment
                ? urls + ["https://localhost:\(configuration.listen.port)"]
                : [configuration.url(port: configuration.listen.port)])
        keys = try KeyService(
            data: configuration.data, algorithm: configuration.algorithm, timing: timing,
            hasLocalIssuer: configuration.localIssuer, hasWebhooks: configuration.push.hasWebhooks,
            audience: url, now: now)
        try store.noteRings(checks.rings.map(\.name.rawValue))
        identity = TLSIdentity(try Self.context(configuration, now: now))
        let verifier = CachedTokenVerifier(
            TokenVerifier(
                policy: Self.policy(configuration, keys, audiences), limits: configuration.limits))
        press = NotificationPress(
            issuer: url, lifetime: configuration.notificationLifetime,
            signer: keys.notificationSigner, nonce: UInt64.random(in: .min ... .max))
        group = MultiThreadedEventLoopGroup(
            numberOfThreads: configuration.threads,
            metricsDelegate: LoopTurnRecorder(metrics.turns(of: .eventLoop)))
        requests = LaneExecutor(
            name: "requests", threads: configuration.threads, turn: metrics.turns(of: .requests))
        pushGroup =
            configuration.push.isActive || !configuration.isDevelopment
            ? MultiThreadedEventLoopGroup(numberOfThreads: 1) : nil
        var tlsSettings = TLSServerSettings()
        // An idle peer that does not read says no goodbye; stopping does not wait long for it.
        tlsSettings.closeTimeout = .seconds(2)
        tlsSettings.onArrivalTurn = { [turn = metrics.turns(of: .arrivals)] in
            turn.record(nanoseconds: $0)
        }
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
                }, cursor: { desk.text($0, in: $1) }, signer: { [keys] in keys.webhookSigner },
                wallSeconds: { desk.wallSeconds() }))
        let grants = CertificateGrants(configuration.certificateGrants)
        authorizer = Authorizer(
            verifier: verifier, grants: grants, revision: AccessRevision(),
            now: { desk.wallSeconds() })
        access = AccessControl(
            authorizer, current, keys: keys, audiences: audiences, loops: loops)
        reload = ConfigurationReload(
            current, read: read,
            ConfigurationReload.Parts(
                identity: identity, access: access, keys: keys, press: press, log: log,
                senders: senders, push: built.push),
            metrics, logger, now: { desk.wallSeconds() })
    }

    /// Lowers the limits of connections to the descriptors there are.
    ///
    /// - Throws: ``Faults`` when they are too few.
    private static func fit(
        _ configuration: inout GatewayConfiguration, _ logger: Logger
    ) throws(Faults) {
        let wanted = configuration.connectionsMax
        let openFiles = OpenFiles.raiseLimit()
        try configuration.fit(openFiles: openFiles)
        guard configuration.connectionsMax < wanted else { return }
        // The default asks for more than most systems allow, and is lowered almost everywhere.
        let isConfigured = configuration.texts["limits.connections"] != nil
        logger.log(
            level: isConfigured ? .warning : .debug,
            "limits.connections is lowered, because few files may be open",
            metadata: [
                "configured": "\(wanted)", "connections": "\(configuration.connectionsMax)",
                "openFiles": "\(openFiles)",
            ])
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
        return TokenPolicy(
            issuers: issuers, audiences: audiences, denied: configuration.denied)
    }

    /// Serves until it is told to stop, then drains.
    ///
    /// - Parameter onReady: Called with the TLS port's URL once connections are accepted.
    /// - Throws: When a port cannot be opened.
    package func run(onReady: @escaping @Sendable (String) -> Void) async throws {
        let requestLimits = RequestLimits(
            rates: configuration.rates, bytesInWork: configuration.requestBytesInWork,
            metrics: metrics)
        let admission = StreamAdmission(
            authorizer: authorizer, requestLimits: requestLimits, registry: sequencer.registry,
            desk: desk, loops: loops,
            sequencer: sequencer, streamSettings: configuration.streams,
            streamsMax: configuration.streamsMax)
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
                unconfirmed: unconfirmed, requestLimits: requestLimits,
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
            responder: Responder(lane: requests.lane("requests", cost: 1)) {
                [quiet, desk] request, channel in
                await Self.answer(request, channel, table, desk, quiet)
            }, tlsSettings: tlsSettings, settings: ConnectionSettings(), admission: admission,
            open: OpenChannels(), onUnreadAnswer: { [metrics] in metrics.answersUnread.increment() }
        )
        let listener = Listener(
            host: listen.host, port: listen.port, connectionsMax: configuration.connectionsMax,
            connectionsPerAddressMax: configuration.connectionsPerAddressMax,
            threads: configuration.threads, identity: identity, setup: setup,
            onServing: ports.openedTLS)
        let adminService = adminService(admin, routes.adminTable, ports, quiet)
        let probes = configuration.probes.map {
            plain(
                admin.probes, at: $0, connectionsMax: configuration.probeConnectionsMax, ports,
                quiet)
        }
        for loop in loops.all { loop.start() }
        tracing?.start()
        startPushing()
        let upkeep = Upkeep(
            configuration: current, sequencer: sequencer, keys: keys, press: press,
            logger: logger
        ) { [access] in access.update() }
        let watch = ConfigurationWatch(reload: reload, current: current)
        let drain = StreamDrain(loops: loops, readiness: readiness)
        var group = ServiceGroupConfiguration(
            services: [
                overview, adminService, upkeep, listener, drain, watch, unconfirmed,
                HeadMark(store: store),
            ]
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
        let connectionsMax = configuration.adminConnectionsMax
        guard !address.isLoopback else {
            return plain(
                responder, at: address, connectionsMax: connectionsMax, ports, logger)
        }
        let connections = OperatorConnections(.init(connectionsMax: connectionsMax))
        let http = HTTP1Channel(
            responder: { [desk] request, writer, channel in
                let context = AdminContext(
                    source: ApplicationRequestContextSource(channel: channel, logger: logger))
                var response = try await responder.respond(to: request, context: context)
                response.headers[.date] = desk.date()
                try await writer.write(response: response.head, body: response.body)
            }, configuration: .init(additionalChannelHandlers: [connections.handler()]))
        var settings = tlsSettings
        settings.offersHTTP2 = false
        return AdminListener(
            address: address, identity: identity, settings: settings,
            loop: operatorGroup.next(), connectionsMax: connectionsMax, http: http, logger: logger,
            onServing: { ports.openedPlain() })
    }

    /// A port without TLS.
    private func plain(
        _ responder: some HTTPResponder<AdminContext>, at address: Address, connectionsMax: Int,
        _ ports: OpenPorts, _ logger: Logger
    ) -> some Service {
        let connections = OperatorConnections(.init(connectionsMax: connectionsMax))
        return PlainPort(
            application: Application(
                responder: responder,
                server: .http1(
                    configuration: .init(additionalChannelHandlers: [connections.handler()])),
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
