import GatewayCore
import GatewayDocuments
import GatewayEngine
import GatewayTelemetry
import WidgetModel

/// A present problem, in words for an operator, with its remedy.
struct HealthIssue: Sendable, Equatable {
    /// The severity of a problem.
    enum Level: String, Sendable {
        /// Users see outdated content, or soon will.
        case critical
        /// It will become critical.
        case warning
    }

    let level: Level
    let what: String
    let remedy: String
    /// The page of the dashboard that shows the problem, with its query; `nil` if none does.
    let page: String?

    init(_ level: Level, _ what: String, _ remedy: String, page: String? = nil) {
        (self.level, self.what, self.remedy, self.page) = (level, what, remedy, page)
    }
}

/// The input of the checks for problems: a sample, and the activity of the previous minutes.
struct HealthSnapshot: Sendable {
    struct Window: Sendable {
        var app: String
        var keys: Int
        var keysMax: Int
        /// The number of log entries between the oldest remembered version and the last.
        var distance: UInt64
    }

    var verdict: Health.Verdict
    /// The seconds until the server's certificate expires.
    var certificateSeconds: Int64 = .max
    /// The seconds until the certificate that identifies an app to APNs expires; negative after
    /// that.
    var pushCertificates: [String: Int64] = [:]
    var now: OverviewSample
    /// The counts of the last minutes.
    var recent = OverviewSample.Counts()
    /// The times from a change to its notification in the last minutes, by channel.
    var sent: [DeliveryChannel: HistogramCounts] = [:]
    var windows: [Window] = []
    /// The faults of a changed configuration that was rejected; `nil` if the last one was applied.
    var configurationFaults: Faults?
    /// The state of the gateway as a node of a cluster; `nil` without a cluster.
    var cluster: ClusterState?
    /// How often new connections had to wait in the last minutes.
    var connectionWaits = 0

    /// The maximum time in which streams should be notified, in seconds.
    static let streamSecondsMax = 2.5
    /// The minimum number of observations for a meaningful share.
    static let observationsMin: UInt64 = 20
    private static let day: Int64 = 86_400

    /// The problems, most severe first.
    var troubles: [HealthIssue] {
        let parts = Set(verdict.notReady + verdict.stuck)
        var troubles = parts.sorted { $0.rawValue < $1.rawValue }.map(failing)
        for more in [
            connections, certificate, pushCertificate, configuration, freshness, store, changes,
            pushes, addresses, versions, lead,
        ] {
            troubles += more
        }
        return troubles.filter { $0.level == .critical } + troubles.filter { $0.level == .warning }
    }

    private func failing(_ part: Health.Part) -> HealthIssue {
        switch part {
        case .listener:
            HealthIssue(
                .critical, "Connections are not accepted.",
                "It is starting or stopping; otherwise see the log for why the port closed."
            )
        case .eventLoops:
            HealthIssue(
                .critical, "Changes are on disk but do not reach the streams.",
                "An event loop is stuck. Check the CPU; if it is idle, restart the gateway."
            )
        case .log where cluster != nil:
            HealthIssue(
                .critical,
                "This node cannot use the log of its cluster; posts and polls get 503"
                    + (cluster?.objection.map { ": \($0)." } ?? "."),
                "See `timeline-gateway cluster status` for the database; clients go on at the nodes "
                    + "that reach it.")
        case .log:
            HealthIssue(
                .critical, "Writes to disk fail; posts get 503.",
                "Check whether the data directory's disk is full or failing.")
        case .pushes:
            HealthIssue(
                .critical, "Changes are on disk but are not pushed.",
                "The push loop is stuck. Check the CPU; if it is idle, restart the gateway."
            )
        case .certificate:
            HealthIssue(
                .critical, "The server's certificate has expired; clients reject it.",
                "Install a new certificate at tls.certificate and tls.key.")
        }
    }

    private var lead: [HealthIssue] {
        guard let cluster, cluster.objection == nil else { return [] }
        if let silence = cluster.silence {
            return [
                HealthIssue(
                    .critical,
                    "This node does not reach the one that leads; what it passes on gets 503: "
                        + "\(silence).",
                    "Let all nodes reach each other at their cluster.node, through every firewall.")
            ]
        }
        guard cluster.leader == nil else { return [] }
        return [
            HealthIssue(
                .critical, "No node leads the cluster; posts get 503.",
                "Another one takes the lead within 6 s. If none does, see the nodes' logs and "
                    + "`timeline-gateway cluster status`.")
        ]
    }

    private var connections: [HealthIssue] {
        guard connectionWaits > 0 else { return [] }
        return [
            HealthIssue(
                .critical,
                "As many connections are open as limits.connections allows; new ones wait.",
                "Raise it, and the limit of open files with it, or add a gateway.")
        ]
    }

    private var certificate: [HealthIssue] {
        guard certificateSeconds > 0, certificateSeconds < 14 * Self.day else { return [] }
        let days = certificateSeconds / Self.day
        return [
            HealthIssue(
                days < 3 ? .critical : .warning,
                "The server certificate expires in \(days == 0 ? "less than a day" : "\(days) d").",
                "Renew it at tls.certificate and tls.key.", page: "/system")
        ]
    }

    private var configuration: [HealthIssue] {
        guard let faults = configurationFaults, let first = faults.list.first else { return [] }
        let others = faults.count > 1 ? " (and \(faults.count - 1) more)" : ""
        return [
            HealthIssue(
                .warning,
                "The changed configuration was rejected, and the next start will fail: "
                    + "\(first)\(others).",
                "The previous one is in force. Correct the file; `timeline-gateway check-config` "
                    + "lists every fault.", page: "/system")
        ]
    }

    private var pushCertificate: [HealthIssue] {
        pushCertificates.filter { $0.value < 14 * Self.day }.sorted { $0.key < $1.key }
            .map { app, seconds in
                let days = seconds / Self.day
                let ends =
                    seconds <= 0
                    ? "has expired; APNs rejects its pushes"
                    : "expires in \(days == 0 ? "less than a day" : "\(days) d")"
                return HealthIssue(
                    days < 3 ? .critical : .warning,
                    "The APNs certificate of \(app) \(ends).",
                    "Get a new one from Apple, and install it at the app's apns.N.certificate and "
                        + "apns.N.certificateKey.", page: "/system")
            }
    }

    private var freshness: [HealthIssue] {
        var troubles: [HealthIssue] = []
        if let stream = sent[.stream], stream.total >= Self.observationsMin,
            let slowest = stream.percentile(0.99), slowest > Self.streamSecondsMax
        {
            troubles.append(
                HealthIssue(
                    slowest > 15 ? .critical : .warning,
                    "Stream notifications are late: p99 is \(Self.seconds(slowest)).",
                    "Compare with the commit time; if that is short, check lagging "
                        + "streams and the CPU."))
        }
        if now.lagging >= 10, now.lagging * 20 > now.streams {
            troubles.append(
                HealthIssue(
                    .warning, "\(now.lagging) of \(now.streams) streams are lagging.",
                    "The clients or the network are slow; they catch up from their cursors."))
        }
        return troubles
    }

    private var store: [HealthIssue] {
        var troubles: [HealthIssue] = []
        if recent.commitFailures > 0, !verdict.notReady.contains(.log) {
            troubles.append(
                HealthIssue(
                    .critical, "\(recent.commitFailures) transactions failed.",
                    "Check the data directory's disk: space, errors, permissions."))
        }
        if recent.writesRefused > 0 {
            troubles.append(
                HealthIssue(
                    .warning, "\(recent.writesRefused) writes were rejected: queue full.",
                    "The disk syncs too slowly. Post in batches, or use a faster disk.")
            )
        }
        if recent.cursorsAhead > 0, cluster != nil {
            troubles.append(
                HealthIssue(
                    .warning, "Clients have cursors of another history of the log.",
                    "After a restore or a move of the database that is expected: they rebuild "
                        + "everything. Otherwise two clusters have the same address."))
        } else if recent.cursorsAhead > 0 {
            troubles.append(
                HealthIssue(
                    .critical, "Clients have cursors past the end of the log.",
                    "The end of the log was lost, as after a restore: stop the gateway, run "
                        + "`timeline-gateway epoch new`, and start it again."))
        }
        return troubles
    }

    private var changes: [HealthIssue] {
        guard recent.changes >= Self.observationsMin else { return [] }
        var troubles: [HealthIssue] = []
        if recent.unmatched * 5 > recent.changes {
            troubles.append(
                HealthIssue(
                    .warning,
                    "\(Self.share(recent.unmatched, recent.changes)) of the changes match no rule.",
                    "Open one under Changes: its explanation lists the nearest rules. Or see "
                        + "`timelinectl changes --unmatched`.", page: "/changes?unmatched=true"))
        }
        if recent.broad * 20 > recent.changes {
            troubles.append(
                HealthIssue(
                    .warning,
                    "\(Self.share(recent.broad, recent.changes)) of the changes lack an attribute "
                        + "that rules match, and reload all clients that it would distinguish.",
                    "Send the attribute with the change; its explanation names it.",
                    page: "/changes"))
        }
        return troubles
    }

    private var pushes: [HealthIssue] {
        var troubles: [HealthIssue] = []
        let ended = recent.pushesSent + recent.pushesFailed
        if ended >= Self.observationsMin, recent.pushesFailed * 5 > ended {
            troubles.append(
                HealthIssue(
                    .warning, "\(Self.share(recent.pushesFailed, ended)) of the pushes fail.",
                    "See Deliveries, or `timelinectl attempts`, for the reasons.",
                    page: "/deliveries"))
        }
        guard let standings = now.standings else { return troubles }
        let all = [
            standings.confirmed, standings.told, standings.underWay, standings.withheld,
            standings.waiting, standings.unreachable,
        ].reduce(0, +)
        if isLarge(standings.withheld, of: all) {
            troubles.append(
                HealthIssue(
                    .warning,
                    "\(standings.withheld) of \(all) push subscriptions "
                        + "(\(Self.share(UInt64(standings.withheld), UInt64(all)))) wait for their "
                        + "device's push budget.",
                    "Changes are more frequent than the push budget allows: match fewer, or use "
                        + "longer collapse windows.", page: "/clients"))
        }
        if isLarge(standings.unreachable, of: all) {
            troubles.append(
                HealthIssue(
                    .warning,
                    "\(standings.unreachable) of \(all) push subscriptions "
                        + "(\(Self.share(UInt64(standings.unreachable), UInt64(all)))) have no working "
                        + "push address.",
                    "Their tokens are dead or webhooks disabled; they catch up on reconnect.",
                    page: "/deliveries"))
        }
        return troubles
    }

    /// The minimum number of affected subscriptions that is a problem, and their minimum share in
    /// per cent.
    static let affectedMin = 3
    private static let affectedPercentMin = 10

    private func isLarge(_ part: Int, of all: Int) -> Bool {
        part >= Self.affectedMin && part * 100 > all * Self.affectedPercentMin
    }

    /// The addresses that failed for good or keep failing, and stopped apps.
    private var addresses: [HealthIssue] {
        guard let standings = now.standings else { return [] }
        var troubles = standings.stoppedApps.sorted().map { app in
            HealthIssue(
                .critical, "A push service rejects the credential or topic of \(app).",
                "See Deliveries for the reason, correct the app's part of apns or fcm, and reload "
                    + "the configuration.", page: "/deliveries?app=\(app)")
        }
        func add(
            _ affected: PushScheduler.StatusCounts.Affected, _ one: String, _ many: String,
            remedy: String
        ) {
            guard let example = affected.example else { return }
            let who = "of \(example.client) (\(example.app))"
            let what =
                affected.count == 1
                ? "\(one) \(who)." : "\(affected.count) \(many), such as that \(who)."
            troubles.append(
                HealthIssue(
                    .warning, what, remedy,
                    page: affected.count == 1
                        ? "/clients/\(example.app)/\(example.client)"
                        : "/deliveries?app=\(example.app)"))
        }
        let again =
            "Nothing more is sent there until its client registers the webhook again or "
            + "`timelinectl resend` succeeds."
        add(
            standings.goneWebhooks, "A webhook answered 410 Gone and is disabled: that",
            "webhooks answered 410 Gone and are disabled", remedy: again)
        add(
            standings.failedWebhooks, "A webhook failed for too long and is disabled: that",
            "webhooks failed for too long and are disabled", remedy: again)
        add(
            standings.failingAddresses, "Pushes to an address keep failing: that",
            "addresses keep failing",
            remedy: "They are retried at growing intervals; see Deliveries for the reasons.")
        return troubles
    }

    private var versions: [HealthIssue] {
        // A full window drops its oldest quarter at once, and then holds less than three quarters.
        windows.filter { $0.keysMax > 0 && $0.keys >= $0.keysMax / 10 * 6 }.map { window in
            HealthIssue(
                .warning,
                "The version window of \(window.app) is nearly full: clients more than "
                    + "\(window.distance) changes behind rebuild everything.",
                "Raise limits.versionKeys, or bind fewer values in rules.")
        }
    }

    private static func share(_ part: UInt64, _ whole: UInt64) -> String {
        "\(whole == 0 ? 0 : Int((Double(part) * 100 / Double(whole)).rounded())) %"
    }

    private static func seconds(_ seconds: Double) -> String {
        seconds >= 100 ? "\(Int(seconds)) s" : "\(Double(Int(seconds * 10)) / 10) s"
    }
}
