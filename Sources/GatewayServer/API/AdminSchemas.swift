import GatewayCore

/// What the admin port's own routes answer.
extension Schema {
    /// What a probe is told.
    static func probe(_ status: String) -> Schema {
        answer([
            "status": word([status]), "failing": list(word(Health.Part.self)),
        ])
    }

    /// What runs.
    static let version = answer([
        "version": text, "swift": text, "openssl": text, "libcurl": text, "nghttp2": text,
        "sqlite": text,
    ]).named("Version")

    // MARK: Overview

    private static let quantiles = answer([
        "count": count, "p50": number.orNull.saying("Seconds."), "p99": number.orNull,
    ]).named("Quantiles")

    private static func byChannel(_ schema: Schema) -> Schema {
        map(schema, names: DeliveryChannel.allCases.map(\.rawValue))
    }

    private static let overviewMembers: Members = [
        "time": moment, "recentSeconds": integer(1...).saying("What counts as recent."),
        "ready": flag,
        "troubles": list(
            answer([
                "level": word(["critical", "warning"]), "what": text, "remedy": text,
            ]).named("Trouble")
        ).saying("What is wrong now, the worst first."),
        "decided": quantiles, "sent": byChannel(quantiles), "confirmed": byChannel(quantiles),
        "commit": quantiles,
        "recent": answer([
            "changes": count, "unmatched": count, "broad": count, "deliveries": count,
            "polls": count, "acknowledgements": count, "rebuildFailures": count,
            "pushesSent": count, "pushesFailed": count, "commits": count, "commitFailures": count,
            "writesRefused": count, "cursorsAhead": count,
        ]),
        "rates": answer([
            "changes": number, "deliveries": number, "polls": number, "acknowledgements": number,
            "pushes": number,
        ]).saying("Each second."),
        "clients": count, "streams": count, "lagging": count, "certificateEnds": moment,
        "log": answer([
            "head": count, "floor": count, "applied": count, "waitingWrites": count,
            "databaseBytes": count, "walBytes": count,
        ]),
        "standings": answer([
            "confirmed": count, "told": count, "underWay": count, "withheld": count,
            "waiting": count, "unreachable": count,
        ]).optional.saying("How pushes stand, where there are any."),
    ]

    /// How the gateway does.
    static let overview = answer(overviewMembers)

    /// How the gateway does, and did in the last hour.
    static let overviewWithPast: Schema = {
        let line = list(number.orNull)
        let lines = answer(["p50": line, "p99": line]).named("QuantileLines")
        return answer(
            overviewMembers + [
                "series": answer([
                    "at": list(count).saying("Milliseconds since 1970."), "decided": lines,
                    "sent": byChannel(lines), "confirmed": byChannel(lines), "commit": lines,
                    "changes": line, "deliveries": line, "polls": line, "pushesSent": line,
                    "pushesFailed": line, "streams": line, "lagging": line, "clients": line,
                    "withheld": line,
                ]).saying("Lines with a number, or none, for each moment of `at`.")
            ]
        ).named("Overview")
    }()

    // MARK: Apps and system

    /// Apps and kinds.
    static let apps: Schema = {
        let kind = answer([
            "kind": text, "configuration": text, "widgets": count,
            "looked": count.saying("Widgets looked at, of some clients picked at random."),
            "stale": count, "staleSince": moment.optional, "displayName": text.optional,
            "recent": quantiles.optional, "hour": quantiles.optional,
        ]).named("Kind")
        return answer([
            "apps": list(
                answer([
                    "app": app, "catalog": count, "warnings": warnings, "clients": count,
                    "clientsLookedAt": count, "kinds": list(kind),
                ]).named("App"))
        ])
    }()

    /// The gateway itself.
    static let system: Schema = answer([
        "time": moment, "version": version,
        "keys": list(
            answer([
                "use": word(["notifications", "tokens", "webhooks"]), "kid": text,
                "algorithm": text, "state": word(["published", "signing", "retiring"]),
                "since": moment.optional, "until": moment.optional,
            ]).named("KeyStanding")),
        "certificateEnds": moment,
        "pushCertificates": list(answer(["app": text, "ends": moment]).named("PushCertificate"))
            .saying("Those by which APNs knows apps."),
        "configuration": map(any([text, flag, count, list(text)])).saying("By option."),
        "limits": map(count),
        "node": answer([
            "listen": text, "admin": text, "adminIsTLS": flag, "development": flag,
            "positions": list(count).saying("What each event loop has applied."),
            "streams": count, "started": moment, "cpuSeconds": number, "residentBytes": number,
            "openFiles": number, "openFilesMax": number,
        ]),
        "log": answer([
            "head": count, "floor": count, "commits": count, "failedCommits": count,
            "refusedJobs": count, "slowestCommitSeconds": number, "databaseBytes": count,
            "walBytes": count,
        ]),
        "windows": list(
            answer(["app": app, "keys": count, "keysMax": count, "floor": count])
                .named("VersionWindow")),
    ]).named("System")
}
