import GatewayCore
import WidgetModel

extension ConfigurationSchema {
    /// The options for pushes and their credentials.
    static let push: [ConfigurationOption] = [apps, forms, webPush, fcm, pushing].flatMap { $0 }

    private static let apps: [ConfigurationOption] = [
        .option("apns.*.app", .text, default: "required", "An app that gets pushes through APNs."),
        .option(
            "apns.*.team", .text, default: "required with a key",
            "Team id of the app's developer account."),
        .option("apns.*.keyID", .text, default: "required with a key", "Id of the key."),
        .option("apns.*.key", .path, default: "required", "APNs key file from Apple, `.p8`."),
        .option(
            "apns.*.certificate", .path, default: "none",
            "Certificate chain, PEM, used instead of a key."),
        .option(
            "apns.*.certificateKey", .path, default: "none", "Private key of the certificate, PEM."),
        .option(
            "apns.*.environment", .choice(["both", "production", "sandbox"]), default: "both",
            "Environments of the key. An app may have one entry per environment."),
        .option(
            "apns.*.topic", .text, default: "app",
            "Bundle id for topics, if different from the app."),
    ]

    private static let forms = APNsPushType.allCases.flatMap { type -> [ConfigurationOption] in
        let options: [ConfigurationOption] = [
            .option(
                "apns.*.\(type).priority", .number(1...10),
                default: [APNsPushType.controls: "10", .background: "5"][type]
                    ?? "none (APNs uses 10)",
                "`apns-priority` of pushes of type \(type)."),
            .option(
                "apns.*.\(type).expiration", .number(0...2_592_000),
                default: [APNsPushType.controls: "0", .liveactivity: "28800"][type] ?? "none",
                "Seconds that APNs stores a push for an unreachable device; 0 for none."),
            .option(
                "apns.*.\(type).collapseID", .text, default: "none",
                "`apns-collapse-id`: a device gets only one of several pushes with it."),
        ]
        return options.filter { type != .liveactivity || $0.key.hasSuffix(".expiration") }
    }

    private static let webPush: [ConfigurationOption] = [
        .option(
            "webPush.*.app", .text, default: "required",
            "An app whose browsers get pushes (Web Push)."),
        .option(
            "webPush.*.key", .path, default: "required",
            "Private P-256 key, PEM, of the app (VAPID)."),
        .option(
            "webPush.*.subject", .text, default: "required",
            "`mailto:` or `https:` URL where push services reach the operator."),
    ]

    private static let fcm: [ConfigurationOption] = [
        .option(
            "fcm.*.app", .text, default: "required",
            "An app that gets pushes through Firebase Cloud Messaging."),
        .option(
            "fcm.*.serviceAccount", .path, default: "required",
            "Key file of the project's service account, JSON, from the Firebase console."),
    ]

    static let pushing: [ConfigurationOption] = [
        .setting(
            "push.apnsProduction", .address, sets: \.push.hosts[.production],
            by: { $0.address($1) },
            default: "api.push.apple.com:443", "Address of APNs."),
        .setting(
            "push.apnsSandbox", .address, sets: \.push.hosts[.sandbox], by: { $0.address($1) },
            default: "api.sandbox.push.apple.com:443",
            "Address of the APNs development environment."),
        .setting(
            "push.fcm", .address, sets: \.push.fcmHost, by: { $0.address($1) },
            default: "fcm.googleapis.com:443", "Address of FCM."),
        .setting(
            "push.apnsCA", .path, sets: \.push.trust, by: { $0.text($1) }, default: "the system's",
            "Trusted certificates for APNs, PEM."),
        .setting(
            "push.serviceRanges", .texts, sets: \.push.serviceRanges, by: { $0.texts($1) },
            default: "none",
            "Addresses that browsers' push services and FCM may have in addition to public ones."),
        .setting(
            "push.serviceCA", .path, sets: \.push.serviceTrust, by: { $0.text($1) },
            default: "the system's",
            "Trusted certificates for browsers' push services and FCM, PEM."),
        allowance(.widgets, "Maximum pushes of type widgets to a device in any 24 hours."),
        allowance(.controls, "Maximum pushes of type controls to a device in any 24 hours."),
        allowance(.background, "Maximum pushes of type background to a device in any 24 hours."),
        allowance(
            .activities,
            "Maximum pushes of priority 10 to a device's Live Activities in any 24 hours."),
        allowance(
            .quietActivities,
            "Maximum pushes of priority 5 to a device's Live Activities in any 24 hours."),
        .duration(
            "push.interval", \.push.terms.interval, unit: 1_000,
            "Minimum time between two pushes to a device for the same kind."),
        .setting(
            "push.intervals.*.kind", .text, sets: \.push.terms.intervals,
            by: { layers, _ in PushConfiguration.intervals(&layers) }, default: "required",
            "A kind with its own interval."),
        .option(
            "push.intervals.*.interval", .duration, default: "required",
            "Minimum time between two pushes to a device for that kind."),
        .option(
            "push.spreadPerSecond", .number(1...1_000_000_000), default: "1000",
            "Devices that a change wakes per second; more are spread over time, unless it is "
                + "urgent."),
        .option(
            "push.spreadNormal", .duration, default: "1m",
            "Maximum time over which pushes are spread."),
        .option(
            "push.spreadLow", .duration, default: "15m",
            "Maximum time over which pushes of low urgency are spread."),
        .number(
            "push.underWay", in: 1...100_000, \.push.terms.underWayMax,
            "Maximum number of pushes in flight."),
        .number("push.attempts", \.push.attemptRows, "Maximum number of stored push attempts."),
        .duration(
            "push.attemptsAge", \.push.attemptSeconds, "Maximum age of stored push attempts."),
        .setting(
            "webhooks.enabled", .flag, sets: \.push.hasWebhooks, by: { $0.flag($1) },
            default: "false",
            "Whether webhooks are allowed. Backends register them."),
        .setting(
            "webhooks.allowedRanges", .texts, sets: \.push.webhookRanges, by: { $0.texts($1) },
            default: "none",
            "Addresses that webhooks and sources of content may have in addition to public ones, "
                + "such as 10.0.0.0/8."),
        .setting(
            "webhooks.ca", .path, sets: \.push.webhookTrust, by: { $0.text($1) },
            default: "the system's",
            "Trusted certificates for webhooks and sources of content, PEM."),
        .number(
            "webhooks.connectionsPerHost", in: 1...64, \.push.terms.webhooksPerHost,
            "Maximum number of requests at a time from an app to a host over HTTP/1.1."),
    ]

    /// The option for an account's pushes per day. Its burst and its reserve for urgent pushes are
    /// in the same proportion as in the default.
    private static func allowance(
        _ account: PushBudget.Account, _ help: String
    ) -> ConfigurationOption {
        let standard = PushBudget.Terms()[account]
        let read: @Sendable (inout ConfigurationLayers, String) -> PushAllowance.Terms? = {
            guard let perDay = $0.number($1) else { return nil }
            let burst = max(1, perDay * standard.burst / standard.perDay)
            return PushAllowance.Terms(
                perDay: perDay, burst: burst, reserve: burst * standard.reserve / standard.burst)
        }
        return .setting(
            "push.\(account)PerDay", .number(1...100_000), sets: \.push.terms.budget[account],
            by: read,
            default: "\(standard.perDay)", help)
    }
}
