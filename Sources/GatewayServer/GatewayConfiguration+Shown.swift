import GatewayCore
import GatewayOperations
import GatewaySigning
import WidgetModel

extension GatewayConfiguration {
    /// The part that the dashboard shows.
    var shown: SystemPage.Configuration {
        .init(
            options: shownOptions, limits: shownLimits, listen: listen, admin: admin,
            isDevelopment: isDevelopment)
    }

    /// The options as an operator wrote them, without keys and their files.
    private var shownOptions: JSONValue {
        let certificates =
            clientCA == nil ? "none" : demandsClientCertificate ? "required" : "optional"
        let apps = Set(push.apps.map(\.app)).sorted()
        var object: JSONObject = [
            "data": .string(data), "tls.clientCertificates": .string(certificates),
            "issuers": .array(issuers.map { .string($0.iss) }), "localIssuer": .bool(localIssuer),
            "signing.algorithm": .string(algorithm.rawValue),
            "signing.lifetime": .string("\(notificationLifetime) s"),
            "signing.publishLead": .string("\(publishLead) s"),
            "retention.age": .string("\(retentionSeconds) s"),
            "retention.changes": .integer(Int64(clamping: retentionChanges)),
            "retention.clientDays": .integer(Int64(clientDays)),
            "apns.apps": .array(apps.map { .string($0) }),
            "webPush.apps": .array(push.webPush.map { .string($0.app) }),
            "fcm.apps": .array(push.fcm.map { .string($0.app) }),
            "webhooks.enabled": .bool(push.hasWebhooks),
        ]
        if let publicURL { object["publicURL"] = .string(publicURL) }
        if let file { object["file"] = .string(file) }
        // Without a channel nothing is pushed.
        guard push.isActive else { return .object(object) }
        let terms = push.terms
        for account in PushBudget.Account.allCases {
            object["push.\(account)PerDay"] = .integer(Int64(terms.budget[account].perDay))
        }
        object["push.interval"] = .string("\(terms.interval / 1_000) s")
        for (kind, interval) in terms.intervals.sorted(by: { $0.key < $1.key }) {
            object["push.intervals.\(kind)"] = .string("\(interval / 1_000) s")
        }
        return .object(object)
    }

    private var shownLimits: JSONValue {
        func number(_ number: Int) -> JSONValue { .integer(Int64(number)) }
        return [
            "eventBytes": number(limits.eventBytesMax), "postEvents": number(limits.postEventsMax),
            "postBytes": number(limits.postBytesMax),
            "catalogBytes": number(limits.catalogBytesMax),
            "catalogKinds": number(limits.catalogKindsMax),
            "registrationBytes": number(limits.registrationBytesMax),
            "registrationWidgets": number(limits.registrationWidgetsMax),
            "widgetKeys": number(limits.widgetKeysMax), "clientKeys": number(limits.clientKeysMax),
            "changeKeys": number(limits.changeKeysMax),
            "stringBytes": number(limits.stringBytesMax), "connections": number(connectionsMax),
            "connectionsPerAddress": number(connectionsPerAddressMax ?? connectionsMax),
            "versionKeys": number(coreLimits.versionKeysMax),
            "clientsPerApp": number(quota.clientsMax), "logBytesPerApp": number(quota.logBytesMax),
            "streams.perClient": number(streamsPerClient),
        ]
    }
}
