import GatewayEngine
import WidgetModel

extension ConfigurationSchema {
    /// The options for pushes and their credentials.
    static let push: [ConfigurationOption] = apps + forms + pushing

    private static let apps = [
        option(
            "apns.*.app", kind: .text, default: "required",
            help: "An app that is pushed to through APNs."),
        option(
            "apns.*.team", kind: .text, default: "required with a key",
            help: "Team id of its developer account."),
        option("apns.*.keyID", kind: .text, default: "required with a key", help: "Id of the key."),
        option(
            "apns.*.key", kind: .path, default: "required",
            help: "The key that Apple made, `.p8`."),
        option(
            "apns.*.certificate", kind: .path, default: "none",
            help: "Certificate chain, PEM, instead of a key."),
        option(
            "apns.*.certificateKey", kind: .path, default: "none",
            help: "Private key of the certificate, PEM."),
        option(
            "apns.*.environment", kind: .choice(["both", "production", "sandbox"]), default: "both",
            help: "Where the key is good for. An app may be named once for each."),
        option(
            "apns.*.topic", kind: .text, default: "app",
            help: "Bundle id that topics begin with, where it is not the app's name here."),
    ]

    private static let forms = APNsPushType.allCases.flatMap { type in
        [
            option(
                "apns.*.\(type).priority", kind: .number(1...10),
                default: [APNsPushType.controls: "10", .background: "5"][type]
                    ?? "none, which means 10",
                help: "`apns-priority` of pushes of type \(type)."),
            option(
                "apns.*.\(type).expiration", kind: .number(0...2_592_000),
                default: type == .controls ? "0" : "none",
                help: "Seconds APNs keeps a push for a device it does not reach; 0 for not at "
                    + "all."),
            option(
                "apns.*.\(type).collapseID", kind: .text, default: "none",
                help: "`apns-collapse-id`: of several with it a device gets one."),
        ]
    }

    private static let pushing = [
        option(
            "push.apnsProduction", kind: .address, default: "api.push.apple.com:443",
            help: "Where APNs is."),
        option(
            "push.apnsSandbox", kind: .address, default: "api.sandbox.push.apple.com:443",
            help: "Where APNs for development is."),
        option(
            "push.apnsCA", kind: .path, default: "the system's",
            help: "Certificates to trust at APNs, PEM."),
        option(
            "push.widgetsPerDay", kind: .number(1...100_000), default: "48",
            help: "Pushes of type widgets to a device in any 24 hours."),
        option(
            "push.controlsPerDay", kind: .number(1...100_000), default: "48",
            help: "Those of type controls."),
        option(
            "push.backgroundPerDay", kind: .number(1...100_000), default: "24",
            help: "Those of type background."),
        option(
            "push.interval", kind: .duration, default: "5m",
            help: "Least time between two pushes to a device for the same kind."),
        option(
            "push.intervals.*.kind", kind: .text, default: "required",
            help: "A kind with an interval of its own."),
        option(
            "push.intervals.*.interval", kind: .duration, default: "required",
            help: "The same for that kind."),
        option(
            "push.spreadPerSecond", kind: limit, default: "1000",
            help: "Devices a change wakes in a second; more are spread, unless it is urgent."),
        option(
            "push.spreadNormal", kind: .duration, default: "1m",
            help: "Over at most so long they are spread."),
        option("push.spreadLow", kind: .duration, default: "15m", help: "The same at low urgency."),
        option(
            "push.underWay", kind: .number(1...100_000), default: "2000",
            help: "Pushes under way at once."),
        option(
            "push.attempts", kind: limit, default: "1000000",
            help: "Most attempts that are kept to be shown."),
        option(
            "push.attemptsAge", kind: .duration, default: "7d",
            help: "Attempts older than this are forgotten."),
        option(
            "webhooks.enabled", kind: .flag, default: "false",
            help: "Whether webhooks are asked, which backends register."),
        option(
            "webhooks.allowedRanges", kind: .texts, default: "none",
            help: "Addresses webhooks may have beside public ones, such as 10.0.0.0/8."),
        option(
            "webhooks.ca", kind: .path, default: "the system's",
            help: "Certificates to trust at webhooks, PEM."),
    ]
}
