import GatewayCore
import GatewayDelivery
import GatewaySigning
import GatewayStorage
import WidgetModel

/// Makes pushes through APNs: one pool for each team, key and environment, whatever the apps.
final class APNsSender: PushSender {
    private struct Place: Hashable {
        let app: String
        let environment: APNsEnvironment
    }

    private struct Account: Hashable {
        let credential: PushConfiguration.Credential
        let environment: APNsEnvironment
    }

    private struct Route {
        let pool: APNsPool
        let forms: [PushBudget.Channel: APNsPushForm]
    }

    private let routes: [Place: Route]
    private let pools: [APNsPool]

    /// Opens no connection before the first push.
    ///
    /// - Parameters:
    ///   - share: Where the provider tokens of an issuer are kept.
    ///   - adjust: Changes what a pool does by itself.
    init(
        _ configuration: PushConfiguration, _ files: PushFiles,
        share: (_ issuer: String) -> ProviderTokenShare,
        adjust: (inout APNsPool.Configuration) -> Void = { _ in }
    ) {
        var pools: [Account: APNsPool] = [:]
        var routes: [Place: Route] = [:]
        for app in configuration.apps {
            guard let credential = Self.credential(app.credential, files, share) else { continue }
            for environment in app.environments {
                let account = Account(credential: app.credential, environment: environment)
                let pool: APNsPool
                if let known = pools[account] {
                    pool = known
                } else {
                    var settings = APNsPool.Configuration(environment, credential)
                    if let host = configuration.hosts[environment] {
                        settings.origin = "https://\(host)"
                    }
                    if let trust = configuration.trust { settings.trust = .file(trust) }
                    adjust(&settings)
                    pool = APNsPool(settings)
                    pools[account] = pool
                }
                routes[Place(app: app.app, environment: environment)] = Route(
                    pool: pool, forms: app.forms)
            }
        }
        self.pools = Array(pools.values)
        self.routes = routes
    }

    private static func credential(
        _ credential: PushConfiguration.Credential, _ files: PushFiles,
        _ share: (String) -> ProviderTokenShare
    ) -> APNsPool.Configuration.Credential? {
        switch (credential, files.credentials[credential]) {
        case (.key(let team, let id, _), .key(let key)?):
            .key(.init(key, id: id, team: team, share: share("\(team).\(id)")))
        case (_, .certificate(let certificate, let key)?):
            .certificate(.init(certificate: certificate, key: key))
        default: nil
        }
    }

    func send(_ order: PushOrder, _ finished: @escaping @Sendable (PushReport) -> Void) {
        guard case .apns(let address) = order.address,
            let route = routes[Place(app: order.client.app, environment: order.environment)],
            let form = route.forms[PushBudget.Channel(pushType: address.pushType)]
        else {
            // The environment has no key: nothing can be sent there before one is configured.
            finished(
                PushReport(
                    result: .apns(.stop(.credential)), outcome: .stopped,
                    reason: "NotConfigured", alert: .credential))
            return
        }
        guard
            var push = APNsPush(
                token: address.token, form: form, registeredAt: order.registeredAt)
        else {
            // One client's token says nothing of the others'.
            finished(
                PushReport(
                    result: .apns(.dropAddress), outcome: .dropped, reason: "BadToken"))
            return
        }
        push.failures = order.failures
        let other = Place(app: order.client.app, environment: order.environment.other)
        push.mayTryOtherEnvironment = order.mayTryOtherEnvironment && routes[other] != nil
        let made = push
        Task {
            let result = await route.pool.push(made)
            finished(PushReport(result))
        }
    }

    func drain() async {
        await withTaskGroup { group in
            for pool in pools { group.addTask { await pool.drain() } }
        }
    }
}

extension PushReport {
    fileprivate init(_ result: APNsPushResult) {
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
        self.result = .apns(result.reaction.verdict, mayHaveArrived: mayHaveArrived)
        outcome = PushOutcome(result.reaction.verdict)
        reference = result.id
        // What was not sent was refused by nobody: the push before it was.
        alert = result.outcome == nil ? nil : result.reaction.alert
    }
}

extension ProviderTokenShare {
    /// The place of an issuer's token in a store.
    static func stored(in store: SQLiteStore, issuer: String) -> ProviderTokenShare {
        @Sendable func known() -> SharedProviderToken? {
            let row = (try? store.providerTokens())?.first { $0.issuer == issuer }
            return row.map { SharedProviderToken(text: $0.token, issuedAt: $0.issuedAt) }
        }
        return ProviderTokenShare(
            read: { known() },
            replace: { _, new in
                // The store has one writer, this gateway.
                let row = ProviderTokenRow(
                    issuer: issuer, issuedAt: new.issuedAt, token: new.text)
                _ = try? await store.write(cost: 1_024) { try $0.putProviderToken(row) }
                return new
            })
    }
}
