import Foundation
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

    /// Reads the keys; no connection is opened before the first push.
    ///
    /// - Parameter share: Where the provider tokens of an issuer are kept.
    /// - Throws: ``Faults`` that name the option whose file is wrong.
    init(
        _ configuration: PushConfiguration, share: (_ issuer: String) -> ProviderTokenShare
    ) throws(Faults) {
        var pools: [Account: APNsPool] = [:]
        var routes: [Place: Route] = [:]
        for app in configuration.apps {
            let credential = try Self.credential(app.credential, share)
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
        _ credential: PushConfiguration.Credential, _ share: (String) -> ProviderTokenShare
    ) throws(Faults) -> APNsPool.Configuration.Credential {
        switch credential {
        case .key(let team, let id, let file):
            let pem = try contents(file, "apns.*.key")
            guard let key = try? SigningKey(pem: pem), key.algorithm == .es256 else {
                throw Faults("apns.*.key", "\(file) holds no P-256 private key in PEM")
            }
            return .key(.init(key, id: id, team: team, share: share("\(team).\(id)")))
        case .certificate(let file, let key):
            return .certificate(
                .init(
                    certificate: try contents(file, "apns.*.certificate"),
                    key: try contents(key, "apns.*.certificateKey")))
        }
    }

    private static func contents(_ file: String, _ option: String) throws(Faults) -> [UInt8] {
        guard let data = FileManager.default.contents(atPath: file) else {
            throw Faults(option, "\(file) cannot be read")
        }
        return Array(data)
    }

    func send(_ order: PushOrder, _ finished: @escaping @Sendable (PushReport) -> Void) {
        guard case .apns(let address) = order.address,
            let route = routes[Place(app: order.client.app, environment: order.environment)],
            let form = route.forms[PushBudget.Channel(pushType: address.pushType)]
        else {
            // The environment has no key: nothing can be sent there before one is configured.
            finished(
                PushReport(
                    result: .apns(.stop(.credential)), outcome: "stopped",
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
                    result: .apns(.dropAddress), outcome: "dropped", reason: "BadToken"))
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
        case .answered(_, let reason, _): self.reason = reason
        case .failed(let failure):
            reason = "\(failure)"
            mayHaveArrived = failure != .notProcessed && failure != .notConnected
        case nil: reason = "NotSent"
        }
        self.result = .apns(result.reaction.verdict, mayHaveArrived: mayHaveArrived)
        outcome = result.reaction.verdict.word
        reference = result.id
        // What was not sent was refused by nobody: the push before it was.
        alert = result.outcome == nil ? nil : result.reaction.alert
    }
}

extension APNsReaction.Verdict {
    /// What happened, in a word for people.
    fileprivate var word: String {
        switch self {
        case .delivered: "sent"
        case .dropAddress: "dropped"
        case .quarantineAddress: "quarantined"
        case .tryOtherEnvironment: "environment"
        case .retry: "retry"
        case .giveUp: "given-up"
        case .stop: "stopped"
        }
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
