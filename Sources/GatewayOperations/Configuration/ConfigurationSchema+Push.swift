import WidgetModel

extension ConfigurationSchema {
    /// The options for pushes and their credentials.
    static let push: [ConfigurationOption] = apps + forms + pushing

    private static let apps = [
        option(
            "apns.*.app", kind: .text, default: "required",
            help: "An app that gets pushes through APNs."),
        option(
            "apns.*.team", kind: .text, default: "required with a key",
            help: "Team id of the app's developer account."),
        option("apns.*.keyID", kind: .text, default: "required with a key", help: "Id of the key."),
        option(
            "apns.*.key", kind: .path, default: "required", help: "APNs key file from Apple, `.p8`."
        ),
        option(
            "apns.*.certificate", kind: .path, default: "none",
            help: "Certificate chain, PEM, used instead of a key."),
        option(
            "apns.*.certificateKey", kind: .path, default: "none",
            help: "Private key of the certificate, PEM."),
        option(
            "apns.*.environment", kind: .choice(["both", "production", "sandbox"]), default: "both",
            help: "Environments of the key. An app may have one entry per environment."),
        option(
            "apns.*.topic", kind: .text, default: "app",
            help: "Bundle id for topics, if different from the app."),
    ]

    private static let forms = APNsPushType.allCases.flatMap { type -> [ConfigurationOption] in
        let options = [
            option(
                "apns.*.\(type).priority", kind: .number(1...10),
                default: [APNsPushType.controls: "10", .background: "5"][type]
                    ?? "none (APNs uses 10)",
                help: "`apns-priority` of pushes of type \(type)."),
            option(
                "apns.*.\(type).expiration", kind: .number(0...2_592_000),
                default: [APNsPushType.controls: "0", .liveactivity: "28800"][type] ?? "none",
                help: "Seconds that APNs stores a push for an unreachable device; 0 for none."),
            option(
                "apns.*.\(type).collapseID", kind: .text, default: "none",
                help: "`apns-collapse-id`: a device gets only one of several pushes with it."),
        ]
        return options.filter { type != .liveactivity || $0.key.hasSuffix(".expiration") }
    }

    private static let pushing = [
        option(
            "push.apnsProduction", kind: .address, default: "api.push.apple.com:443",
            help: "Address of APNs."),
        option(
            "push.apnsSandbox", kind: .address, default: "api.sandbox.push.apple.com:443",
            help: "Address of the APNs development environment."),
        option(
            "push.apnsCA", kind: .path, default: "the system's",
            help: "Trusted certificates for APNs, PEM."),
        option(
            "push.widgetsPerDay", kind: .number(1...100_000), default: "48",
            help: "Maximum pushes of type widgets to a device in any 24 hours."),
        option(
            "push.controlsPerDay", kind: .number(1...100_000), default: "48",
            help: "Maximum pushes of type controls to a device in any 24 hours."),
        option(
            "push.backgroundPerDay", kind: .number(1...100_000), default: "24",
            help: "Maximum pushes of type background to a device in any 24 hours."),
        option(
            "push.activitiesPerDay", kind: .number(1...100_000), default: "240",
            help: "Maximum pushes of priority 10 to a device's Live Activities in any 24 hours."),
        option(
            "push.quietActivitiesPerDay", kind: .number(1...100_000), default: "1440",
            help: "Maximum pushes of priority 5 to a device's Live Activities in any 24 hours."),
        option(
            "push.interval", kind: .duration, default: "5m",
            help: "Minimum time between two pushes to a device for the same kind."),
        option(
            "push.intervals.*.kind", kind: .text, default: "required",
            help: "A kind with its own interval."),
        option(
            "push.intervals.*.interval", kind: .duration, default: "required",
            help: "Minimum time between two pushes to a device for that kind."),
        option(
            "push.spreadPerSecond", kind: limit, default: "1000",
            help: "Devices that a change wakes per second; more are spread over time, unless it is "
                + "urgent."),
        option(
            "push.spreadNormal", kind: .duration, default: "1m",
            help: "Maximum time over which pushes are spread."),
        option(
            "push.spreadLow", kind: .duration, default: "15m",
            help: "Maximum time over which pushes of low urgency are spread."),
        option(
            "push.underWay", kind: .number(1...100_000), default: "2000",
            help: "Maximum number of pushes in flight."),
        option(
            "push.attempts", kind: limit, default: "1000000",
            help: "Maximum number of stored push attempts."),
        option(
            "push.attemptsAge", kind: .duration, default: "7d",
            help: "Maximum age of stored push attempts."),
        option(
            "webhooks.enabled", kind: .flag, default: "false",
            help: "Whether webhooks are allowed. Backends register them."),
        option(
            "webhooks.allowedRanges", kind: .texts, default: "none",
            help: "Addresses that webhooks and sources of content may have in addition to public "
                + "ones, such as 10.0.0.0/8."),
        option(
            "webhooks.ca", kind: .path, default: "the system's",
            help: "Trusted certificates for webhooks and sources of content, PEM."),
        option(
            "webhooks.connectionsPerHost", kind: .number(1...64), default: "4",
            help: "Maximum number of requests at a time from an app to a host over HTTP/1.1."),
    ]
}
