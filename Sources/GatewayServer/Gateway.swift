import CoreMetrics
import Foundation
import GatewayCluster
import GatewayCore
import GatewayDelivery
import GatewayEngine
import GatewayOperations
import GatewaySigning
import GatewayStorage
import GatewayTLS
import Logging
import NIOCore
import NIOHTTP1
import NIOPosix
import ServiceLifecycle
import Synchronization
import UnixSignals
import WidgetModel

/// A complete gateway, built once from top to bottom.
package struct Gateway: Sendable {
    private let configuration: GatewayConfiguration
    private let current: CurrentConfiguration
    private let reload: ConfigurationReload
    private let log: GatewayLog
    private let logger: Logger
    private let sampledLog: SampledLog
    /// The time of the start, in monotonic milliseconds.
    private let began: Int64
    private let group: MultiThreadedEventLoopGroup
    /// The threads that answer the requests of the TLS port.
    private let requests: LaneExecutor
    /// A separate thread answers operators and probes, however busy the others are.
    private let operatorGroup = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    /// A separate thread decides pushes; `nil` where nothing is ever pushed.
    private let pushGroup: MultiThreadedEventLoopGroup?
    private let senders: PushSenders
    private let engine: Engine
    /// `nil` if no other gateway shares the log.
    private let member: ClusterMember?
    /// The socket of the port for other nodes.
    private let nodeSocket: ListeningSocket?
    private let tickets: TicketKeys?
    private let date: HTTPDateCache
    private let metrics: GatewayMetrics
    private let signer: NotificationSigner
    private let keys: KeyService
    private let issuerKeys: IssuerKeys
    private let tlsSettings: TLSServerSettings
    private let identity: TLSIdentity
    private let authorizer: Authorizer
    private let access: AccessControl
    /// `nil` where nothing is traced.
    private let tracing: GatewayTracing?
    private let readiness = Readiness()
    /// The TLS port.
    private let socket: ListeningSocket
    /// The socket of the admin port if it has TLS.
    private let adminSocket: ListeningSocket?

    /// Opens the data directory, replays the log and prepares everything to serve.
    ///
    /// - Throws: ``Faults``, ``PortFault``, ``DataDirectoryLoss``, `StoreError`, `SigningError` or `TLSError`,
    ///   each stating the problem and its place.
    /// - Parameters:
    ///   - acceptsLoss: Whether to continue without missing parts of the data directory.
    ///   - read: Reads the configuration again, for a reload.
    package init(
        _ configuration: GatewayConfiguration, log: GatewayLog, acceptsLoss: Bool = false,
        clock: GatewayClock = .system, read: @escaping ConfigurationReload.Read
    ) async throws {
        let logger = log.logger("timeline-gateway")
        self.log = log
        self.logger = logger
        began = clock.now()
        sampledLog = SampledLog(logger, now: clock.now)
        var configuration = configuration
        try Self.fit(&configuration, logger)
        Self.logStart(configuration, logger)
        // Before its files are read, so that the watch applies any later change of them.
        let state = ConfigurationState(configuration)
        let pushFiles = try PushFiles(configuration.push)
        tracing = try configuration.tracing.map { try GatewayTracing($0, clock: clock, log: log) }
        let directory = DataDirectory(configuration.data)
        try directory.create()
        let metrics = GatewayMetrics()
        self.metrics = metrics
        let opening = StoreOpening(configuration, acceptsLoss: acceptsLoss, metrics, logger)
        let store: SQLiteStore
        if let start = try await opening.cluster() {
            store = start.store
            let member = try ClusterMember(start, clock: clock, logger: logger)
            self.member = member
            let tickets = TicketKeys(now: { clock.wallSeconds() })
            try tickets.follow(Array(store.secret), now: clock.wallSeconds())
            self.tickets = tickets
            nodeSocket = try configuration.cluster.map {
                try Self.bind($0.node, for: "cluster.node")
            }
        } else {
            store = try opening.store()
            (member, tickets, nodeSocket) = (nil, nil, nil)
        }
        // The ports are bound after the directory is locked: a second gateway fails with that error
        // and not the port's. They are bound before anything is signed: tokens and notifications
        // name the gateway by its URL.
        socket = try Self.bind(
            configuration.listen, for: "listen",
            patience: configuration.streams.patienceMilliseconds)
        configuration.listen = Address(host: configuration.listen.host, port: socket.port)
        adminSocket =
            configuration.admin.isLoopback ? nil : try Self.bind(configuration.admin, for: "admin")
        self.configuration = configuration
        current = CurrentConfiguration(configuration)
        let now = clock.wallSeconds()
        let timing = KeyRing.Timing(
            publishLead: configuration.publishLead,
            signatureLifetime: configuration.notificationLifetime)
        let urls = try directory.note(
            url: configuration.url(port: configuration.listen.port),
            isConfigured: configuration.publicURL != nil, timing: timing)
        let url = urls.first ?? ""
        let named =
            configuration.isDevelopment
            ? urls + ["https://localhost:\(configuration.listen.port)"]
            : [configuration.url(port: configuration.listen.port)]
        // Some identity providers write the same URL with a slash, others without.
        let bare = named.map { $0.hasSuffix("/") ? String($0.dropLast()) : $0 }
        let audiences = Set(bare + bare.map { $0 + "/" })
        if member != nil { try SharedKeyRings(configuration).copy(from: store) }
        keys = try KeyService(
            data: configuration.data, algorithm: configuration.algorithm, timing: timing,
            hasLocalIssuer: configuration.localIssuer,
            hasWebhooks: configuration.push.isActive, audience: url, now: now)
        try store.noteRings(StartChecks.rings(of: configuration).map(\.name.rawValue))
        identity = TLSIdentity(
            try configuration.tlsContext(now: now, ticketKeys: tickets))
        issuerKeys = try IssuerKeys(configuration, metrics: metrics, clock: clock, logger: logger)
        let verifier = CachedTokenVerifier(
            TokenVerifier(
                policy: AccessControl.policy(
                    configuration, keys: keys, issuerKeys: issuerKeys, audiences: audiences),
                limits: configuration.limits),
            onUnknownKey: { [issuerKeys] in issuerKeys.missesKey(of: $0) })
        signer = NotificationSigner(
            issuer: url, lifetime: configuration.notificationLifetime,
            signer: keys.notificationSigner, nonce: UInt64.random(in: .min ... .max))
        group = MultiThreadedEventLoopGroup(
            numberOfThreads: configuration.threads,
            metricsDelegate: LoopTurnRecorder(metrics.turns(of: .eventLoop)))
        requests = LaneExecutor(
            name: "requests", threads: configuration.threads, turn: metrics.turns(of: .requests))
        pushGroup =
            configuration.push.isActive || !configuration.isDevelopment || member != nil
            ? MultiThreadedEventLoopGroup(numberOfThreads: 1) : nil
        var tlsSettings = TLSServerSettings()
        // An idle peer that does not read sends no close_notify; stopping does not wait long for
        // it.
        tlsSettings.closeTimeout = .seconds(2)
        tlsSettings.onArrivalTurn = { [turn = metrics.turns(of: .arrivals)] in
            turn.record(nanoseconds: $0)
        }
        tlsSettings.onHandshakeFailure = { [sampledLog] source, failure, reason in
            sampledLog.log(
                .failedHandshake, of: "\(source) \(failure.rawValue)",
                ["from": "\(source)", "failure": "\(failure.rawValue)", "reason": "\(reason)"])
        }
        tlsSettings.onViolation = { [sampledLog] source, violation, reason in
            sampledLog.log(
                .endedConnection, of: "\(source) \(violation.rawValue)",
                ["from": "\(source)", "violation": "\(violation.rawValue)", "reason": "\(reason)"])
        }
        tlsSettings.onRefusal = { [sampledLog] refusal, source in
            let from = source.map { "\($0)" } ?? "-"
            sampledLog.log(
                .refusedConnection, of: "\(from) \(refusal.rawValue)",
                ["from": "\(from)", "limit": "\(refusal.rawValue)"])
        }
        self.tlsSettings = tlsSettings
        let services = EngineServices(
            signer: signer, metrics: metrics, tlsSettings: tlsSettings,
            eventLoops: Array(group.makeIterator()), clock: clock, tracing: tracing, logger: logger,
            pushLogger: log.logger("timeline-gateway.push"), sampledLog: sampledLog)
        engine = try Engine(
            configuration.engine, store: store, pushLoop: pushGroup?.next(), services: services,
            leader: member?.link)
        engine.clients.permit(
            webhooks: pushFiles.webhookRanges, services: pushFiles.serviceRanges)
        date = HTTPDateCache(clock: clock)
        senders = try PushSenders(
            configuration.push, pushFiles,
            share: { issuer in .stored(in: store, issuer: issuer) },
            WebhookPushes.Content(
                notification: { [signer] order throws(SigningError) in
                    try signer.notification(
                        app: order.client.app, content: order.content, cause: nil,
                        now: clock.wallSeconds())
                }, cursor: { [cursors = engine.cursors] in cursors.text($0, in: $1) },
                signer: { [keys] in keys.webhookSigner }, clock: clock,
                asked: { [metrics] in metrics.contentAsked($0, $1) }))
        let grants = CertificateGrants(configuration.certificateGrants)
        let judged = AccessState(
            verifier: verifier, grants: grants, revision: AccessRevision(),
            now: clock.wallSeconds)
        authorizer = Authorizer(access: judged, log: sampledLog)
        access = AccessControl(
            judged, current, keys: keys, issuerKeys: issuerKeys, audiences: audiences,
            loops: engine.loops)
        // Weak, because the access control has the keys.
        issuerKeys.onChange { [weak access] in access?.update() }
        reload = ConfigurationReload(
            current, state: state, read: read,
            parts: ConfigurationReload.Parts(
                identity: identity, ticketKeys: tickets, access: access, keys: keys,
                issuerKeys: issuerKeys,
                signer: signer, log: log,
                senders: senders, push: engine.push, clients: engine.clients),
            metrics: metrics, logger: logger, now: clock.wallSeconds)
    }

    /// Ends this process, because it cannot go on as a node. Its service manager starts it again;
    /// clients go on at another node meanwhile.
    private static func abandon(_ reason: String, _ logger: Logger) -> Never {
        logger.critical("this node cannot go on", metadata: ["reason": "\(reason)"])
        // Work on other threads must not wait for the log any more.
        _exit(1)
    }

    /// Lowers the connection limits to fit the available descriptors. Throws ``Faults`` if they are
    /// too few.
    private static func fit(
        _ configuration: inout GatewayConfiguration, _ logger: Logger
    ) throws(Faults) {
        let wanted = configuration.connectionsMax
        let openFiles = OpenFiles.raiseLimit()
        try configuration.fit(openFiles: openFiles)
        guard configuration.connectionsMax < wanted else { return }
        // The default needs more than most systems allow, and is lowered almost everywhere.
        let isConfigured = configuration.texts["limits.connections"] != nil
        logger.log(
            level: isConfigured ? .warning : .debug,
            "limits.connections lowered because of the limit of open files",
            metadata: [
                "configured": "\(wanted)", "connections": "\(configuration.connectionsMax)",
                "openFiles": "\(openFiles)",
            ])
    }

    private static func bind(
        _ address: Address, for option: String, patience: Int64 = 0
    ) throws(PortFault) -> ListeningSocket {
        do {
            return try ListeningSocket(host: address.host, port: address.port, patience: patience)
        } catch {
            throw PortFault(option: option, error: PortError(address, error))
        }
    }

    private static func seconds(from start: Int64, to end: Int64) -> String {
        String(format: "%.1f", Double(end - start) / 1_000)
    }

    /// Logs the start with what an operator asks for first, and settings that may be mistakes.
    private static func logStart(_ configuration: GatewayConfiguration, _ logger: Logger) {
        logger.info(
            "the gateway starts",
            metadata: [
                "version": "\(productVersion)", "listen": "\(configuration.listen)",
                "admin": "\(configuration.admin)",
                "probes": "\(configuration.probes?.description ?? "-")",
                // A field called data would be taken for a payload and masked.
                "directory": "\(configuration.data)",
                "configuration": "\(configuration.file ?? "development mode")",
                "connectionsMax": "\(configuration.connectionsMax)",
                "streamsMax": "\(configuration.streamsMax)",
                "pushes": "\(configuration.push.isActive)",
            ])
        for issuer in configuration.issuers {
            guard case .set(let set) = issuer.keys, !set.skipped.isEmpty else { continue }
            logger.warning(
                "keys of an issuer cannot be used",
                metadata: ["issuer": "\(issuer.iss)", "reasons": "\(set.skipped)"])
        }
    }

    /// Serves until it is asked to stop, then drains. Throws if a port cannot be opened.
    ///
    /// - Parameters:
    ///   - stops: Each element asks the gateway to stop, and no signal is trapped. By default
    ///     SIGTERM and SIGINT stop it, and SIGHUP reloads its configuration.
    ///   - onReady: Called with the TLS port's URL, and the port numbers, once connections are
    ///     accepted.
    package func run(
        until stops: AsyncStream<Void>? = nil,
        onReady: @escaping @Sendable (_ url: String, _ ports: GatewayPorts) -> Void
    ) async throws {
        let requestLimits = RequestLimits(
            rates: configuration.rates, bytesInWork: configuration.requestBytesInWork,
            metrics: metrics, log: sampledLog, now: engine.clock.now)
        let admission = StreamAdmission(
            engine: engine, authorizer: authorizer, requestLimits: requestLimits, date: date,
            streamSettings: configuration.streams, streamsMax: configuration.streamsMax,
            tickets: StreamTickets(leader: engine.leader, now: engine.clock.now),
            cors: CORSPolicy(configuration.corsOrigins))
        let explainer = Explainer(engine) { [current] in current.value.push.terms }
        let routes = GatewayRoutes(
            engine: engine, admission: admission,
            starts: ActivityStarts(engine) { [senders] in senders.channels(of: $0) },
            authorizer: authorizer, signer: signer, metrics: metrics,
            limits: configuration.limits, keys: keys,
            applicationServerKey: { [senders] in senders.applicationServerKey(of: $0) },
            registrationDays: configuration.clientDays,
            configuration: reload.commands, explainer: explainer, tracing: tracing)
        let unconfirmed = StalenessScanner(engine)
        let connections = ConnectionLimit(
            configuration.connectionsMax, perAddress: configuration.connectionsPerAddressMax)
        let overview = OverviewSampler(
            MetricsPage(
                engine: engine, metrics: metrics, signer: signer, keys: keys,
                tlsCounters: tlsSettings.counters, connections: connections,
                certificateEnds: { [identity] in identity.current.notAfter },
                pushCertificateEnds: { [senders] in senders.certificateEnds },
                unconfirmed: unconfirmed, requestLimits: requestLimits,
                spans: { [tracing] in tracing?.counts }),
            readiness, configurationFaults: { [current] in current.refusal })
        let admin = AdminRoutes(
            sampler: overview,
            system: SystemPage(page: overview.page) { [current] in current.value.shown },
            apps: AppsPage(sampler: overview, explainer: explainer, engine: engine))
        let (identity, readiness, listen) = (identity, readiness, configuration.listen)
        let ready: @Sendable () -> Void = { [logger, engine, began, configuration] in
            logger.info(
                "the gateway is ready",
                metadata: [
                    "listen": "\(listen)", "admin": "\(configuration.admin)",
                    "head": "\(engine.store.head)",
                    "seconds": "\(Self.seconds(from: began, to: engine.clock.now()))",
                ])
        }
        let ports = OpenPorts(configuration.probes == nil ? 2 : 3) { ports in
            readiness.set(serving: true)
            ready()
            onReady("https://\(Address(host: listen.host, port: ports.listen))", ports)
        }
        let quiet = log.logger(LogLevels.requests)
        let table = routes.table
        let listener = Listener(
            .tls(socket, identity, connections, threads: configuration.threads),
            setup: HTTPPipeline(
                responder: responder(requests.lane("requests", cost: 1)) {
                    try await table.respond(to: $0, on: $1, logger: quiet)
                }, tlsSettings: tlsSettings,
                settings: ConnectionSettings(idleTimeout: .seconds(configuration.idleSeconds)),
                proxies: configuration.proxies, admission: admission,
                loops: engine.loops.all.map(\.loop),
                onUnreadAnswer: { [metrics] in metrics.answersUnread.increment() }),
            onServing: { port in ports.opened { $0.listen = port } })
        let adminPort = adminPort(
            admin.table(
                beside: routes.adminTable, isLoopback: configuration.admin.isLoopback,
                limits: configuration.limits), quiet
        ) { port in ports.opened { $0.admin = port } }
        let probes = configuration.probes.map { address in
            let table = admin.probeTable
            return operatorPort(
                at: address, socket: nil, connectionsMax: configuration.probeConnectionsMax,
                onServing: { port in ports.opened { $0.probes = port } }
            ) { try await table.respond(to: $0, on: $1, logger: quiet) }
        }
        for loop in engine.loops.all { loop.start() }
        tracing?.start()
        startPushing()
        let upkeep = MaintenanceService(
            configuration: current, engine: engine, keys: keys, signer: signer,
            tickets: tickets, logger: logger
        ) { [access] in access.update() }
        let watch = ConfigurationWatch(
            reload: reload, current: current, trapsSignal: stops == nil)
        let drain = StreamDrain(loops: engine.loops, readiness: readiness)
        // Its records below notice describe services with everything in them; as the logger's own
        // level, this holds whatever the rules of the configuration are.
        var lifecycle = log.logger("timeline-gateway.lifecycle")
        lifecycle.logLevel = .notice
        var running: [any Service] = [
            overview, adminPort, upkeep, listener, drain, watch, unconfirmed, issuerKeys,
            // How many messages about peers' events were left out.
            RegularWork(interval: .seconds(10)) { [sampledLogs] in
                for log in sampledLogs { log.summarize() }
            },
        ]
        if let probes { running.append(probes) }
        if let member, let nodeSocket {
            // The last is stopped first: another gateway leads while this one ends its streams, of
            // which that one asks until then.
            running.insert(nodePort(at: nodeSocket, of: member, routes, quiet), at: 0)
            running.append(member)
            member.start(
                engine, endPushes: { [self] in await endPushes(at: engine.clock.now() + 5_000) },
                rings: { [current] in SharedKeyRings(current.value) },
                onKeys: { Task { await upkeep.lookAtKeys() } }
            ) { [logger] in
                Self.abandon($0, logger)
            }
            try await member.untilKeysAreKnown()
            await upkeep.lookAtKeys()
        } else {
            // The head on disk, by which the next start detects a lost tail.
            running.append(
                RegularWork(interval: .seconds(1)) { [store = engine.store] in
                    await withCheckedContinuation { continuation in
                        // This call waits for the disk.
                        DispatchQueue.global().async {
                            store.noteHead()
                            continuation.resume()
                        }
                    }
                })
        }
        var group = ServiceGroupConfiguration(services: running, logger: lifecycle)
        // A peer must not be able to keep the gateway from stopping.
        group.maximumGracefulShutdownDuration = .seconds(20)
        let services = ServiceGroup(configuration: group)
        await issuerKeys.fetchMissing()
        let signals: UnixSignalsSequence? =
            if stops == nil { await UnixSignalsSequence(trapping: .sigterm, .sigint) } else { nil }
        let stopping = Mutex(engine.clock.now())
        let stop: @Sendable (_ signal: String) async -> Void = { [logger, engine] signal in
            stopping.withLock { $0 = engine.clock.now() }
            logger.info(
                "the gateway stops",
                metadata: [
                    "signal": "\(signal)",
                    "streams": "\(engine.loops.all.reduce(0) { $0 + $1.openStreams })",
                ])
            await services.triggerGracefulShutdown()
        }
        let waiting = Task {
            if let signals {
                for await signal in signals { await stop("\(signal)") }
            } else if let stops {
                for await _ in stops { await stop("none") }
            }
        }
        defer { waiting.cancel() }
        do {
            try await services.run()
        } catch {
            logger.error("the gateway stops because of an error", metadata: ["error": "\(error)"])
            try? await close(at: engine.clock.now())
            guard let error = error as? PortError else { throw error }
            throw PortFault(
                option: error.address == configuration.probes ? "probes" : "admin", error: error)
        }
        try await close(at: stopping.withLock { $0 })
        for log in sampledLogs { log.summarize(atEnd: true) }
        logger.info(
            "the gateway has stopped",
            metadata: [
                "seconds": "\(Self.seconds(from: stopping.withLock { $0 }, to: engine.clock.now()))"
            ])
    }

    private typealias Respond =
        @Sendable (GatewayRequest, any Channel) async throws -> RouteResponse

    /// Returns the responder of a port. `fields` are added to every response that lacks them.
    private func responder(
        _ executor: any TaskExecutor, fields: [(name: String, value: String)] = [],
        _ respond: @escaping Respond
    ) -> Responder {
        Responder(
            executor: executor,
            complete: { [date] headers in
                for (name, value) in fields where !headers.contains(name: name) {
                    headers.add(name: name, value: value)
                }
                headers.add(name: FieldName.date, value: date.text)
            }, answer: { try? await respond($0, $1) })
    }

    /// The admin port: plain on loopback, elsewhere with TLS and for operators only.
    private func adminPort(
        _ table: RouteTable, _ logger: Logger, onServing: @escaping @Sendable (_ port: Int) -> Void
    ) -> Listener {
        let address = configuration.admin
        let responder = AdminResponder(
            table: table, access: AdminAccess(isLoopback: address.isLoopback),
            authorizer: authorizer)
        return operatorPort(
            at: address, socket: adminSocket, connectionsMax: configuration.adminConnectionsMax,
            fields: AdminHeaders.fields, onServing: onServing
        ) { try await responder.respond(to: $0, on: $1, logger: logger) }
    }

    /// A port for operators or probes, with all its work done on one thread.
    private func operatorPort(
        at address: Address, socket: ListeningSocket?, connectionsMax: Int,
        fields: [(name: String, value: String)] = [],
        onServing: @escaping @Sendable (_ port: Int) -> Void, _ respond: @escaping Respond
    ) -> Listener {
        let loop = operatorGroup.next()
        // Anyone may reach the port with TLS: at most a quarter may come from one address.
        let limit = ConnectionLimit(connectionsMax, perAddress: max(1, connectionsMax / 4))
        return Listener(
            socket.map { .tls($0, identity, limit, threads: 1) } ?? .plain(address),
            setup: HTTPPipeline(
                responder: responder(LoopExecutor(loop: loop), fields: fields, respond),
                tlsSettings: tlsSettings, loops: [loop],
                newest: socket == nil ? NewestConnections(connectionsMax, on: loop) : nil),
            onServing: onServing)
    }

    /// The port for the other nodes of the cluster.
    private func nodePort(
        at socket: ListeningSocket, of member: ClusterMember, _ routes: GatewayRoutes,
        _ logger: Logger
    ) -> Listener {
        let table = routes.nodeTable { try member.note($1, from: $0) }
        // The nodes' own limits count what they pass on.
        var settings = ConnectionSettings()
        settings.headerBytesMax = 64 * 1024
        settings.concurrentRequestsMax = 1_000
        let connectionsMax = 256
        return Listener(
            .tls(
                socket, member.identity,
                ConnectionLimit(connectionsMax, perAddress: connectionsMax), threads: 1),
            setup: HTTPPipeline(
                responder: responder(requests.lane("nodes", cost: 1)) {
                    try await GatewayRoutes.respond(to: $0, on: $1, by: table, logger: logger)
                }, tlsSettings: tlsSettings, settings: settings,
                loops: engine.loops.all.map(\.loop)),
            onServing: { _ in })
    }

    private var sampledLogs: [SampledLog] { [sampledLog] + [engine.push?.log].compactMap(\.self) }

    private func startPushing() {
        engine.push?.start(
            PushLoop.Dependencies(
                store: engine.store,
                drop: { [clients = engine.clients] in try await clients.drop($1, of: $0) },
                sent: { [clients = engine.clients] in try await clients.sent(to: $0) },
                sender: { [senders] in senders.sender(of: $0, asked: $1) },
                acceptTime: engine.changes.accepted.time,
                mayPush: { [leader = engine.leader] in leader?.isHere ?? true }))
    }

    /// Ends pushing, and those in flight at a time: the next start, or another gateway, sends what
    /// they leave unconfirmed.
    private func endPushes(at end: Int64) async {
        await engine.push?.stop { [senders, clock = engine.clock] in
            let (ended, ending) = AsyncStream.makeStream(of: Void.self)
            let drain = Task {
                await senders.drain()
                ending.finish()
            }
            let alarm = Task {
                await clock.sleep(end)
                ending.finish()
            }
            for await _ in ended {}
            for task in [drain, alarm] { task.cancel() }
        }
    }

    /// Ends what goes on when every service has stopped; `moment` is the time of the request to stop.
    private func close(at moment: Int64) async throws {
        await endPushes(at: moment + 20_000)
        // After everything that may have ended a span.
        await tracing?.stop()
        await member?.stop()
        try await engine.store.close()
        for shard in engine.loops.all {
            try? await shard.loop.submit { shard.stop() }.get()
        }
        try await group.shutdownGracefully()
        try await pushGroup?.shutdownGracefully()
        try await operatorGroup.shutdownGracefully()
    }
}

/// A port of the configuration that cannot be opened.
package struct PortFault: Error, CustomStringConvertible {
    /// The option that names the port.
    let option: String
    /// The address and the reason.
    let error: PortError

    package var description: String { "\(option): \(error)" }
}

/// The ports on which a gateway accepts connections.
package struct GatewayPorts: Sendable {
    /// The TLS port.
    package fileprivate(set) var listen = 0
    package fileprivate(set) var admin = 0
    /// The port for probes only; 0 if there is none.
    package fileprivate(set) var probes = 0
}

/// Waits for every port to be open.
private final class OpenPorts: Sendable {
    private let state: Mutex<(waiting: Int, ports: GatewayPorts)>
    private let onAll: @Sendable (GatewayPorts) -> Void

    /// - Parameter onAll: Called once, when `count` ports are open.
    init(_ count: Int, onAll: @escaping @Sendable (GatewayPorts) -> Void) {
        state = Mutex((count, GatewayPorts()))
        self.onAll = onAll
    }

    func opened(_ note: (inout GatewayPorts) -> Void) {
        let all = state.withLock { state -> GatewayPorts? in
            note(&state.ports)
            state.waiting -= 1
            return state.waiting == 0 ? state.ports : nil
        }
        if let all { onAll(all) }
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
