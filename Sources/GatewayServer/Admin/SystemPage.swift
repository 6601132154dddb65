import Foundation
import GatewayCore
import GatewaySigning
import GatewayStorage
import WidgetModel

/// What the dashboard shows of the gateway itself: nothing in it is a secret.
struct SystemPage: Sendable {
    let current: CurrentConfiguration
    let page: MetricsPage

    private var configuration: GatewayConfiguration { current.value }

    var json: JSONValue {
        [
            "time": .string(timestamp(page.sequencer.desk.wallMilliseconds())),
            "version": BuildInformation.json, "keys": .array(page.keys.standings.map(\.json)),
            "certificateEnds": .string(
                timestamp(Int64(page.certificateEnds().timeIntervalSince1970) * 1000)),
            "pushCertificates": .array(pushCertificates),
            "configuration": configuration.shown, "limits": configuration.shownLimits,
            "node": node, "log": log, "windows": windows,
        ]
    }

    private var pushCertificates: [JSONValue] {
        page.pushCertificateEnds().sorted { $0.key < $1.key }.map { app, ends in
            [
                "app": .string(app),
                "ends": .string(timestamp(Int64(ends.timeIntervalSince1970) * 1000)),
            ]
        }
    }

    private var node: JSONValue {
        let process = ProcessFigures()
        let positions = page.loops.all.map { JSONValue.integer(Int64(clamping: $0.position)) }
        return [
            "listen": .string(configuration.listen.description),
            "admin": .string(configuration.admin.description),
            "adminIsTLS": .bool(!configuration.admin.isLoopback),
            "development": .bool(configuration.isDevelopment), "positions": .array(positions),
            "streams": .integer(Int64(page.loops.openStreams)),
            "started": .string(timestamp(Int64(process.startSeconds * 1000))),
            "cpuSeconds": .number(process.cpuSeconds),
            "residentBytes": .number(process.residentBytes),
            "openFiles": .number(process.openFiles),
            "openFilesMax": .number(process.openFilesMax),
        ]
    }

    private var log: JSONValue {
        let figures = page.sequencer.store.figures
        return [
            "head": .integer(Int64(clamping: figures.head)),
            "floor": .integer(Int64(clamping: figures.floor)),
            "commits": .integer(Int64(figures.commits)),
            "failedCommits": .integer(Int64(figures.failedCommits)),
            "refusedJobs": .integer(Int64(figures.refusedJobs)),
            "slowestCommitSeconds": .number(figures.slowestCommitSeconds),
            "databaseBytes": .integer(figures.databaseBytes),
            "walBytes": .integer(figures.walBytes),
        ]
    }

    private var windows: JSONValue {
        let windows = page.loops.all.first?.figures.windows ?? []
        return .array(
            windows.map { window in
                [
                    "app": .string(window.app), "keys": .integer(Int64(window.keys)),
                    "keysMax": .integer(Int64(window.keysMax)),
                    "floor": .integer(Int64(clamping: window.floor)),
                ]
            })
    }
}

extension KeyService.Standing {
    fileprivate var json: JSONValue {
        var object: JSONObject = [
            "use": .string(use), "kid": .string(kid), "algorithm": .string(algorithm),
        ]
        switch state {
        case .published(let from):
            object["state"] = "published"
            object["until"] = .string(timestamp(from * 1000))
        case .signing(let since):
            object["state"] = "signing"
            object["since"] = .string(timestamp(since * 1000))
        case .retiring(let until):
            object["state"] = "retiring"
            object["until"] = .string(timestamp(until * 1000))
        }
        return .object(object)
    }
}

extension GatewayConfiguration {
    /// What it runs by, as an operator wrote it; keys and their files are left out.
    fileprivate var shown: JSONValue {
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
            "webhooks.enabled": .bool(push.hasWebhooks),
        ]
        if let publicURL { object["publicURL"] = .string(publicURL) }
        return .object(object)
    }

    fileprivate var shownLimits: JSONValue {
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
