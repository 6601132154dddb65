import GatewayCore
import WidgetModel

/// What is pushed, and with what.
package struct PushConfiguration: Sendable {
    /// How an app's pushes are authenticated.
    package enum Credential: Sendable, Hashable {
        /// A key of a team, in PEM, as Apple hands it out (`.p8`).
        case key(team: String, id: String, file: String)
        /// A certificate and its key, in PEM.
        case certificate(file: String, key: String)
    }

    /// One app that is pushed to through APNs.
    package struct App: Sendable {
        /// Its place in the list, by which faults name it.
        package var place: Int
        /// Its bundle id.
        package var app: String
        /// How its pushes are authenticated.
        package var credential: Credential
        /// Where the credential is good for.
        package var environments: [APNsEnvironment]
        /// What its pushes have in common, by type.
        package var forms: [PushBudget.Channel: APNsPushForm]
    }

    /// How much is pushed.
    package var terms = PushDesk.Terms()
    /// The apps, each once for each environment.
    package var apps: [App] = []
    /// `HOST:PORT` by environment, instead of Apple's.
    package var hosts: [APNsEnvironment: Address] = [:]
    /// Certificates in PEM to trust at APNs, instead of the system's.
    package var trust: String?
    /// Whether webhooks are asked.
    package var hasWebhooks = false
    /// Ranges of addresses that webhooks may have beside public ones, such as `10.0.0.0/8`.
    package var webhookRanges: [String] = []
    /// Certificates in PEM to trust at webhooks, instead of the system's.
    package var webhookTrust: String?
    /// Open connections to webhooks.
    var webhookConnectionsMax = 256
    /// Age at which attempts are forgotten, in seconds.
    package var attemptSeconds: Int64 = 7 * 86_400
    /// Most attempts kept.
    package var attemptRows: Int64 = 1_000_000

    /// Whether anything is pushed.
    package var isActive: Bool { hasWebhooks || !apps.isEmpty }

    /// Nothing is pushed.
    package init() {}

    /// Reads what the layers say.
    init(_ layers: inout ConfigurationLayers) {
        for place in layers.places(of: "apns") {
            if let app = Self.app(&layers, place) { apps.append(app) }
        }
        for environment in APNsEnvironment.allCases {
            let count = Dictionary(
                grouping: apps.filter { $0.environments.contains(environment) }, by: \.app)
            for (app, entries) in count where entries.count > 1 {
                layers.fault("apns", "\(app) is named twice for \(environment)")
            }
        }
        for (environment, key) in [
            (APNsEnvironment.production, "push.apnsProduction"),
            (.sandbox, "push.apnsSandbox"),
        ] {
            if let host = layers.text(key).flatMap(Address.init) { hosts[environment] = host }
        }
        trust = layers.text("push.apnsCA")
        hasWebhooks = layers.flag("webhooks.enabled") ?? false
        webhookRanges = layers.texts("webhooks.allowedRanges") ?? []
        webhookTrust = layers.text("webhooks.ca")
        attemptSeconds = layers.seconds("push.attemptsAge") ?? attemptSeconds
        attemptRows = layers.number("push.attempts").map(Int64.init) ?? attemptRows
        terms.budget.widgets = Self.allowance(
            &layers, "push.widgetsPerDay", terms.budget.widgets)
        terms.budget.controls = Self.allowance(
            &layers, "push.controlsPerDay", terms.budget.controls)
        terms.budget.background = Self.allowance(
            &layers, "push.backgroundPerDay", terms.budget.background)
        if let interval = layers.seconds("push.interval") { terms.interval = interval * 1_000 }
        terms.intervals = Self.intervals(&layers)
        terms.underWayMax = layers.number("push.underWay") ?? terms.underWayMax
        terms.spread = PushSpread.Terms(
            devicesPerSecond: layers.number("push.spreadPerSecond") ?? 1_000,
            window: (layers.seconds("push.spreadLow") ?? 900) * 1_000,
            windowOfNormal: (layers.seconds("push.spreadNormal") ?? 60) * 1_000)
        terms.apnsApps = Set(apps.map(\.app))
        terms.hasWebhooks = hasWebhooks
    }

    /// The intervals of single kinds, in milliseconds.
    private static func intervals(_ layers: inout ConfigurationLayers) -> [String: Int64] {
        var intervals: [String: Int64] = [:]
        for place in layers.places(of: "push.intervals") {
            let prefix = "push.intervals.\(place)"
            let kind = layers.required("\(prefix).kind")
            if layers.required("\(prefix).interval").isEmpty { continue }
            guard let interval = layers.seconds("\(prefix).interval"), !kind.isEmpty else {
                continue
            }
            if intervals.updateValue(interval * 1_000, forKey: kind) != nil {
                layers.fault("\(prefix).kind", "\(kind) has an interval already")
            }
        }
        return intervals
    }

    /// So many a day, saved up and kept for what is urgent in the usual proportions.
    private static func allowance(
        _ layers: inout ConfigurationLayers, _ key: String, _ standard: PushAllowance.Terms
    ) -> PushAllowance.Terms {
        guard let perDay = layers.number(key) else { return standard }
        let burst = max(1, perDay * standard.burst / standard.perDay)
        return PushAllowance.Terms(
            perDay: perDay, burst: burst, reserve: burst * standard.reserve / standard.burst)
    }

    private static func app(_ layers: inout ConfigurationLayers, _ place: Int) -> App? {
        let prefix = "apns.\(place)"
        let app = layers.required("\(prefix).app")
        let credential: Credential
        if let file = layers.text("\(prefix).certificate") {
            credential = .certificate(
                file: file, key: layers.required("\(prefix).certificateKey"))
        } else {
            credential = .key(
                team: layers.required("\(prefix).team"), id: layers.required("\(prefix).keyID"),
                file: layers.required("\(prefix).key"))
        }
        let environments: [APNsEnvironment] =
            switch layers.text("\(prefix).environment") {
            case "production": [.production]
            case "sandbox": [.sandbox]
            default: APNsEnvironment.allCases
            }
        guard !app.isEmpty else { return nil }
        let topic = layers.text("\(prefix).topic") ?? app
        var forms: [PushBudget.Channel: APNsPushForm] = [:]
        for channel in PushBudget.Channel.allCases {
            forms[channel] = form(&layers, prefix, channel, topic)
        }
        return App(
            place: place, app: app, credential: credential, environments: environments, forms: forms
        )
    }

    private static func form(
        _ layers: inout ConfigurationLayers, _ app: String, _ channel: PushBudget.Channel,
        _ topic: String
    ) -> APNsPushForm? {
        let prefix = "\(app).\(channel)"
        do throws(APNsPushForm.Fault) {
            let standard = try APNsPushForm(channel, app: topic)
            return try APNsPushForm(
                channel, app: topic,
                priority: layers.number("\(prefix).priority") ?? standard.priority,
                lifetime: layers.number("\(prefix).expiration").map(Int64.init)
                    ?? standard.lifetime,
                collapseID: layers.text("\(prefix).collapseID"))
        } catch {
            let key =
                switch error {
                case .app: "\(app).topic"
                case .priority: "\(prefix).priority"
                case .lifetime: "\(prefix).expiration"
                case .collapseID: "\(prefix).collapseID"
                }
            layers.fault(key, "is not what APNs takes for pushes of type \(channel)")
            return nil
        }
    }
}
