import GatewayEngine
import WidgetModel

extension ConfigurationSchema {
    /// The options for pushes and their credentials.
    static let push: [ConfigurationOption] = apps + forms + pushing

    private static let apps = [
        option("apns.*.app", .text, "required", "An app that is pushed to through APNs."),
        option(
            "apns.*.team", .text, "required with a key", "Team id of its developer account."),
        option("apns.*.keyID", .text, "required with a key", "Id of the key."),
        option("apns.*.key", .path, "required", "The key that Apple made, `.p8`."),
        option(
            "apns.*.certificate", .path, "none", "Certificate chain, PEM, instead of a key."),
        option("apns.*.certificateKey", .path, "none", "Private key of the certificate, PEM."),
        option(
            "apns.*.environment", .choice(["both", "production", "sandbox"]), "both",
            "Where the key is good for. An app may be named once for each."),
        option(
            "apns.*.topic", .text, "app",
            "Bundle id that topics begin with, where it is not the app's name here."),
    ]

    private static let forms = APNsPushType.allCases.flatMap { type in
        [
            option(
                "apns.*.\(type).priority", .number(1...10),
                [APNsPushType.controls: "10", .background: "5"][type] ?? "none, which means 10",
                "`apns-priority` of pushes of type \(type)."),
            option(
                "apns.*.\(type).expiration", .number(0...2_592_000),
                type == .controls ? "0" : "none",
                "Seconds APNs keeps a push for a device it does not reach; 0 for not at all."),
            option(
                "apns.*.\(type).collapseID", .text, "none",
                "`apns-collapse-id`: of several with it a device gets one."),
        ]
    }

    private static let pushing = [
        option(
            "push.apnsProduction", .address, "api.push.apple.com:443", "Where APNs is."),
        option(
            "push.apnsSandbox", .address, "api.sandbox.push.apple.com:443",
            "Where APNs for development is."),
        option("push.apnsCA", .path, "the system's", "Certificates to trust at APNs, PEM."),
        option(
            "push.widgetsPerDay", .number(1...100_000), "48",
            "Pushes of type widgets to a device in any 24 hours."),
        option("push.controlsPerDay", .number(1...100_000), "48", "Those of type controls."),
        option(
            "push.backgroundPerDay", .number(1...100_000), "24", "Those of type background."),
        option(
            "push.interval", .duration, "5m",
            "Least time between two pushes to a device for the same kind."),
        option(
            "push.intervals.*.kind", .text, "required", "A kind with an interval of its own."),
        option("push.intervals.*.interval", .duration, "required", "The same for that kind."),
        option(
            "push.spreadPerSecond", limit, "1000",
            "Devices a change wakes in a second; more are spread, unless it is urgent."),
        option("push.spreadNormal", .duration, "1m", "Over at most so long they are spread."),
        option("push.spreadLow", .duration, "15m", "The same at low urgency."),
        option("push.underWay", .number(1...100_000), "2000", "Pushes under way at once."),
        option("push.attempts", limit, "1000000", "Most attempts that are kept to be shown."),
        option("push.attemptsAge", .duration, "7d", "Attempts older than this are forgotten."),
        option(
            "webhooks.enabled", .flag, "false",
            "Whether webhooks are asked, which backends register."),
        option(
            "webhooks.allowedRanges", .texts, "none",
            "Addresses webhooks may have beside public ones, such as 10.0.0.0/8."),
        option("webhooks.ca", .path, "the system's", "Certificates to trust at webhooks, PEM."),
    ]
}
