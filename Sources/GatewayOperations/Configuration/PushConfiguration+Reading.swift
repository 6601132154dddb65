import GatewayCore
import WidgetModel

extension PushConfiguration {
    init(_ layers: inout ConfigurationLayers) {
        self.init()
        for place in layers.places(of: "apns") {
            if let app = Self.app(&layers, place) { apps.append(app) }
        }
        for environment in APNsEnvironment.allCases {
            let count = Dictionary(
                grouping: apps.filter { $0.environments.contains(environment) }, by: \.app)
            for (app, entries) in count where entries.count > 1 {
                layers.fault("apns", "\(app) has two entries for \(environment)")
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
        for account in PushBudget.Account.allCases {
            terms.budget[account] = Self.allowance(
                &layers, "push.\(account)PerDay", terms.budget[account])
        }
        if let interval = layers.seconds("push.interval") { terms.interval = interval * 1_000 }
        terms.intervals = Self.intervals(&layers)
        terms.underWayMax = layers.number("push.underWay") ?? terms.underWayMax
        terms.webhooksPerHost =
            layers.number("webhooks.connectionsPerHost") ?? terms.webhooksPerHost
        terms.spread = PushSpread.Terms(
            devicesPerSecond: layers.number("push.spreadPerSecond") ?? 1_000,
            window: (layers.seconds("push.spreadLow") ?? 900) * 1_000,
            windowOfNormal: (layers.seconds("push.spreadNormal") ?? 60) * 1_000)
        terms.apnsApps = Set(apps.map(\.app))
        terms.hasWebhooks = hasWebhooks
    }

    /// Reads the intervals for individual kinds, in milliseconds.
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
                layers.fault("\(prefix).kind", "\(kind) has two intervals")
            }
        }
        return intervals
    }

    /// Reads an allowance per day; its burst and its reserve for urgent pushes are in the same
    /// proportion as in the default.
    private static func allowance(
        _ layers: inout ConfigurationLayers, _ key: String, _ standard: PushAllowance.Terms
    ) -> PushAllowance.Terms {
        guard let perDay = layers.number(key) else { return standard }
        let burst = max(1, perDay * standard.burst / standard.perDay)
        return PushAllowance.Terms(
            perDay: perDay, burst: burst, reserve: burst * standard.reserve / standard.burst)
    }

    /// Reads the id of a team or of a key, as Apple issues them.
    private static func teamOrKey(_ layers: inout ConfigurationLayers, _ key: String) -> String {
        let text = layers.required(key)
        let isID =
            text.utf8.count == 10
            && text.utf8.allSatisfy { byte in
                (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            }
        if !text.isEmpty, !isID {
            layers.fault(key, "must be 10 characters of A-Z 0-9, as in Apple's developer account")
        }
        return text
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
                team: teamOrKey(&layers, "\(prefix).team"),
                id: teamOrKey(&layers, "\(prefix).keyID"),
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
        if topic.contains(".push-type.") {
            layers.fault(
                layers.text(raw: "\(prefix).topic") == nil ? "\(prefix).app" : "\(prefix).topic",
                "must be the bundle id alone: the gateway appends the type of each push, such as "
                    + "`.push-type.widgets`")
        }
        var forms: [APNsPushType: APNsPushForm] = [:]
        for type in APNsPushType.allCases {
            forms[type] = form(&layers, prefix, type, topic: topic)
        }
        return App(
            place: place, app: app, credential: credential, environments: environments, forms: forms
        )
    }

    private static func form(
        _ layers: inout ConfigurationLayers, _ app: String, _ type: APNsPushType,
        topic: String
    ) -> APNsPushForm? {
        let prefix = "\(app).\(type)"
        do throws(APNsPushForm.Fault) {
            let standard = try APNsPushForm(type, app: topic)
            return try APNsPushForm(
                type, app: topic,
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
            layers.fault(key, "is not accepted by APNs for pushes of type \(type)")
            return nil
        }
    }
}
