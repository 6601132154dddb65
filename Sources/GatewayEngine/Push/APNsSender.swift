import CurlMulti
import GatewayCore
import GatewayDelivery
import GatewayOperations
import GatewaySigning
import GatewayStorage
import WidgetModel

/// Sends pushes through APNs: one pool for each team, key and environment, shared by all apps.
final class APNsSender: PushSender {
    private typealias AppService = PushScheduler.AppService

    /// The identity of a sender at APNs, and the endpoint.
    private struct Account: Hashable {
        let credential: PushConfiguration.Credential
        /// The content of the credential's files.
        let proof: PushFiles.Credential.Proof
        let environment: APNsEnvironment
        let origin: String?
        let trust: CurlTrust
    }

    /// The purpose of a pool's connections. APNs ties each connection to the topics it has seen: a
    /// new topic needs new connections.
    private struct Purpose: Hashable {
        let account: Account
        var topics: Set<String> = []
    }

    private struct Route {
        let account: Account
        let pool: APNsPool
        let forms: [APNsPushType: APNsPushForm]
    }

    private let routes: [AppService: Route]
    private let pools: [Purpose: APNsPool]
    private let channels: [Account: APNsChannels]

    /// Creates a sender; opens no connection before the first push.
    ///
    /// - Parameters:
    ///   - former: The previous sender, whose unchanged pools are reused.
    ///   - share: Returns the storage for an issuer's provider tokens.
    ///   - adjust: Changes a pool's default configuration.
    init(
        _ configuration: PushConfiguration, _ files: PushFiles, after former: APNsSender? = nil,
        share: (_ issuer: String) -> ProviderTokenShare,
        adjust: (inout APNsPool.Configuration) -> Void = { _ in }
    ) {
        var accounts: [(app: PushConfiguration.App, account: Account)] = []
        var purposes: [Account: Purpose] = [:]
        for app in configuration.apps {
            guard let proof = files.credentials[app.credential]?.proof else { continue }
            for environment in app.environments {
                let account = Account(
                    credential: app.credential, proof: proof, environment: environment,
                    origin: configuration.hosts[environment].map { "https://\($0)" },
                    trust: files.trust)
                accounts.append((app, account))
                purposes[account, default: Purpose(account: account)].topics.formUnion(
                    app.forms.values.map(\.topic))
            }
        }
        var pools: [Purpose: APNsPool] = [:]
        var channels: [Account: APNsChannels] = [:]
        for purpose in purposes.values {
            let account = purpose.account
            guard let credential = Self.credential(account.credential, files, share) else {
                continue
            }
            var settings = APNsPool.Configuration(account.environment, credential)
            if let origin = account.origin { settings.origin = origin }
            settings.trust = account.trust
            adjust(&settings)
            pools[purpose] = former?.pools[purpose] ?? APNsPool(settings)
            channels[account] =
                former?.channels[account]
                ?? APNsChannels(settings, account.environment, isApple: account.origin == nil)
        }
        var routes: [AppService: Route] = [:]
        for (app, account) in accounts {
            guard let pool = purposes[account].flatMap({ pools[$0] }) else { continue }
            routes[AppService(app: app.app, .apns(account.environment))] = Route(
                account: account, pool: pool, forms: app.forms)
        }
        self.pools = pools
        self.channels = channels
        self.routes = routes
    }

    /// The places where this sender uses another account, or another form, than the one before it.
    func mended(since former: APNsSender?) -> Set<PushScheduler.AppService> {
        Set(
            routes.compactMap { place, route in
                let before = former?.routes[place]
                return before?.account == route.account && before?.forms == route.forms
                    ? nil : place
            })
    }

    /// Returns what manages the broadcast channels of an app, by environment.
    func channels(of app: String) -> [String: ActivityStarts.Channels] {
        var found: [String: ActivityStarts.Channels] = [:]
        for (place, route) in routes where place.app == app {
            guard let channels = channels[route.account], let form = route.forms[.liveactivity]
            else { continue }
            found["\(route.account.environment)"] = ActivityStarts.Channels(
                create: { try await channels.create(bundle: form.app) },
                delete: { try await channels.delete($0, bundle: form.app) })
        }
        return found
    }

    /// Retries pushes that APNs rejected.
    func resume() {
        for pool in pools.values { pool.resume() }
    }

    private static func credential(
        _ credential: PushConfiguration.Credential, _ files: PushFiles,
        _ share: (String) -> ProviderTokenShare
    ) -> APNsPool.Configuration.Credential? {
        switch (credential, files.credentials[credential]) {
        case (.key(let team, let id, _), .key(let key)?):
            .key(.init(key, id: id, team: team, share: share("\(team).\(id)")))
        case (_, .certificate(let certificate, let key, _)?):
            .certificate(certificate, key: key)
        default: nil
        }
    }

    func send(_ order: DuePush, _ finished: @escaping @Sendable (PushReport) -> Void) {
        if order.address.apns?.type == .liveactivity, order.activity == nil {
            // The catalog does not declare its type: there is nothing to show.
            return finished(PushReport(result: .content(.nothing)))
        }
        guard case .apns(let address) = order.address,
            let route = routes[AppService(app: order.client.app, .apns(order.environment))],
            let form = route.forms[address.type]
        else {
            // The environment has no key: nothing can be sent there until one is configured.
            finished(
                PushReport(
                    result: .service(.stop(.credential)), reason: "NotConfigured",
                    alert: .credentialRefused))
            return
        }
        let known = order.registeredAt
        let activity = order.activity
        let shaped = form.at(priority: activity?.priority, until: activity?.start?.expiresAt)
        let made =
            if let channel = address.channel {
                APNsPush(channel: channel, bundle: form.app, form: shaped, registeredAt: known)
            } else {
                APNsPush(token: address.token, form: shaped, registeredAt: known)
            }
        guard var push = made else {
            // One client's malformed token says nothing about other clients.
            finished(PushReport(result: .service(.dropAddress), reason: "BadToken"))
            return
        }
        push.failures = order.failures
        push.payload = order.activity?.payload
        let other = AppService(app: order.client.app, .apns(order.environment.other))
        push.mayTryOtherEnvironment = order.mayTryOtherEnvironment && routes[other] != nil
        route.pool.push(push) { finished(PushReport($0, topic: form.topic)) }
    }

    func drain() async {
        await drain(except: nil)
    }

    /// Waits for the pushes in flight in pools that another sender does not reuse.
    func drain(except next: APNsSender?) async {
        await withTaskGroup { group in
            for (purpose, pool) in pools where next?.pools[purpose] !== pool {
                group.addTask { await pool.drain() }
            }
        }
    }
}

extension PushReport {
    fileprivate init(_ result: APNsPushResult, topic: String) {
        self.topic = topic
        var mayHaveArrived = false
        switch result.outcome {
        case .answered(let status, let reason, _):
            self.status = status
            self.reason = reason
        case .failed(let failure):
            reason = failure.rawValue
            mayHaveArrived = failure != .notProcessed && failure != .notConnected
        case nil: reason = "NotSent"
        }
        self.result = .service(result.reaction.verdict, mayHaveArrived: mayHaveArrived)
        reference = result.id
        // An unsent push was not rejected itself: an earlier push was.
        alert = result.outcome == nil ? nil : result.reaction.alert
    }
}

extension ProviderTokenShare {
    /// Returns where the tokens of an issuer are stored.
    package typealias OfIssuer = @Sendable (_ issuer: String) -> ProviderTokenShare

    /// The storage of an issuer's token in a store.
    package static func stored(in store: SQLiteStore, issuer: String) -> ProviderTokenShare {
        ProviderTokenShare(
            read: {
                let row = (try? await store.providerTokens())?.first { $0.issuer == issuer }
                return row.map { SharedProviderToken(text: $0.token, issuedAt: $0.issuedAt) }
            },
            replace: { old, new in
                let row = ProviderTokenRow(
                    issuer: issuer, issuedAt: new.issuedAt, token: new.text)
                let held = try? await store.write(cost: 1_024) {
                    try $0.replaceProviderToken(old?.text, with: row)
                }.value
                return held.map { SharedProviderToken(text: $0.token, issuedAt: $0.issuedAt) }
                    ?? new
            })
    }
}
