import GatewayCore
import WidgetModel

extension GatewayConfiguration {
    mutating func readPush(_ layers: inout ConfigurationLayers) {
        push.apps = PushConfiguration.apps(&layers)
        push.webPush = PushConfiguration.webPush(&layers)
        push.fcm = PushConfiguration.fcm(&layers)
        // The faults of these are listed before those of the others.
        let first = [
            "push.apnsProduction", "push.apnsSandbox", "webhooks.enabled", "push.attemptsAge",
            "push.attempts",
        ]
        read(first.compactMap(ConfigurationSchema.option(for:)), &layers)
        read(ConfigurationSchema.pushing.filter { !first.contains($0.key) }, &layers)
        push.terms.spread = PushSpread.Terms(
            devicesPerSecond: layers.number("push.spreadPerSecond") ?? 1_000,
            window: (layers.seconds("push.spreadLow") ?? 900) * 1_000,
            windowOfNormal: (layers.seconds("push.spreadNormal") ?? 60) * 1_000)
        push.terms.apnsApps = Set(push.apps.map(\.app))
        push.terms.webPushApps = Set(push.webPush.map(\.app))
        push.terms.fcmApps = Set(push.fcm.map(\.app))
        push.terms.hasWebhooks = push.hasWebhooks
    }
}

extension PushConfiguration {
    fileprivate static func apps(_ layers: inout ConfigurationLayers) -> [App] {
        let apps = layers.places(of: "apns").compactMap { app(&layers, $0) }
        for environment in APNsEnvironment.allCases {
            let count = Dictionary(
                grouping: apps.filter { $0.environments.contains(environment) }, by: \.app)
            for (app, entries) in count where entries.count > 1 {
                layers.fault("apns", "\(app) has two entries for \(environment)")
            }
        }
        return apps
    }

    fileprivate static func webPush(_ layers: inout ConfigurationLayers) -> [WebPushApp] {
        places(of: "webPush", &layers).map { place, app in
            let prefix = "webPush.\(place)"
            let key = layers.required("\(prefix).key")
            let subject = layers.required("\(prefix).subject")
            let scheme = "mailto:"
            let isMail =
                subject.hasPrefix(scheme)
                && subject.dropFirst(scheme.count).split(separator: "@").count == 2
            if !subject.isEmpty, !isMail, (try? WebhookEndpoint(subject)) == nil {
                layers.fault(
                    "\(prefix).subject", "must be mailto: with an address, or an https URL")
            }
            return WebPushApp(place: place, app: app, key: key, subject: subject)
        }
    }

    fileprivate static func fcm(_ layers: inout ConfigurationLayers) -> [FCMApp] {
        places(of: "fcm", &layers).map { place, app in
            FCMApp(place: place, app: app, file: layers.required("fcm.\(place).serviceAccount"))
        }
    }

    /// Reads the apps of a list in which each has one entry.
    private static func places(
        of list: String, _ layers: inout ConfigurationLayers
    ) -> [(place: Int, app: String)] {
        var apps: [(place: Int, app: String)] = []
        for place in layers.places(of: list) {
            let app = layers.required("\(list).\(place).app")
            if !app.isEmpty, apps.contains(where: { $0.app == app }) {
                layers.fault("\(list).\(place).app", "\(app) has two entries")
            }
            apps.append((place, app))
        }
        return apps
    }

    /// Reads the intervals for individual kinds, in milliseconds.
    static func intervals(_ layers: inout ConfigurationLayers) -> [String: Int64] {
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
