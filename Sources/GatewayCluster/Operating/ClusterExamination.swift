import Foundation
import GatewayOperations

/// Checks what a node needs of its database, as the node's login and without changing anything. The
/// node may be running.
package struct ClusterExamination {
    private let node: ClusterNode.Configuration
    private let runsHere: Bool
    private var found: [DiagnosticResult] = []

    /// Returns all findings.
    ///
    /// - Parameter runsHere: Whether a gateway has the data directory of the node open.
    package static func findings(
        of node: ClusterNode.Configuration, runsHere: Bool
    ) -> [DiagnosticResult] {
        var examination = ClusterExamination(node: node, runsHere: runsHere)
        do throws(PostgresError) {
            let connection = try PostgresAdministration(node.address)
            if try examination.examineServer(connection), try examination.examineKey(connection) {
                try examination.examineName(connection)
            }
        } catch {
            examination.note(.fail, "cluster", "\(error)", remedy: remedy(for: "\(error)"))
        }
        return examination.found
    }

    /// Words of libpq's messages, which have no codes, and what to do; the first that fits counts.
    private static let remedies = [
        ("startup parameter", "This is a pooler: name the servers themselves in cluster.url."),
        (
            "authentication failed|pg_hba.conf|role \"|no password|permission denied",
            "Check the login, its password or certificate, pg_hba.conf, and `cluster prepare --login`."
        ),
        (
            "certificate|SSL|channel binding|private key",
            "Check sslrootcert, sslcert and sslkey, and that the server's certificate names its host."
        ),
        ("database \"", "Create the database, or correct its name in cluster.url."),
        ("read-only|hot standby", "Name the primary in cluster.url, too, or promote a standby."),
        ("translate host", "Correct the host in cluster.url, or check the name servers."),
    ]

    private static func remedy(for message: String) -> String {
        remedies.first { $0.0.split(separator: "|").contains { message.contains($0) } }?.1
            ?? "Start the server, and check its host and port in cluster.url, and firewalls."
    }

    private mutating func note(
        _ level: DiagnosticResult.Level, _ subject: String, _ what: String, remedy: String = "",
        if isFound: Bool = true
    ) {
        guard isFound else { return }
        found.append(DiagnosticResult(level, subject: subject, what: what, remedy: remedy))
    }

    /// Returns whether the login may read the rows of a cluster.
    private mutating func examineServer(
        _ connection: PostgresAdministration
    ) throws(PostgresError) -> Bool {
        // The catalog shows everybody which tables there are, and to_regclass does not.
        let row = try connection.rows(
            """
            SELECT current_setting('server_version_num')::bigint / 10000, pg_backend_pid(),
              (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
              current_setting('fsync') = 'on', current_setting('synchronous_commit') <> 'off',
              current_setting('synchronous_standby_names') <> '',
              EXISTS (SELECT FROM pg_stat_replication
                WHERE coalesce(sync_state, 'sync') IN ('sync', 'quorum')),
              c.relowner IS NOT NULL, coalesce(pg_has_role(c.relowner, 'USAGE'), false),
              EXISTS (SELECT FROM pg_roles
                WHERE rolname = '\(ClusterAdministration.nodeRole)' AND pg_has_role(oid, 'USAGE'))
            FROM (VALUES (1)) one LEFT JOIN (pg_class c JOIN pg_namespace n
              ON n.oid = c.relnamespace AND n.nspname = 'timeline' AND c.relname = 'cluster') ON true
            """
        ).first
        guard let row else { throw .unexpectedAnswer }
        let (version, process) = (try row.integer(0), try row.integer(1))
        let (isSynced, isSynchronous) = (try row.boolean(3), try row.boolean(4))
        let user = node.address.user
        note(.ok, "cluster", "PostgreSQL \(version), as \(node.address)")
        note(
            .fail, "cluster", "PostgreSQL \(version) is too old", remedy: "Use 15 to 17.",
            if: version < 15)
        // A pooler reports its own process number. LISTEN would prove nothing: a pooler without
        // other users hands out the same connection again.
        note(
            .fail, "cluster", "a pooler is in the way: it loses LISTEN and a session's settings",
            remedy: "Name the servers themselves in cluster.url.",
            if: process != Int64(connection.serverProcess))
        let ahead = try row.integer(2) - Int64(Date().timeIntervalSince1970 * 1_000)
        note(
            .warn, "cluster", "its clock and this machine's differ by \(abs(ahead) / 1_000) s",
            remedy: "Run chrony or systemd-timesyncd on both machines.", if: abs(ahead) > 5_000)
        note(
            .fail, "durability", "fsync is off: a crash of the machine can damage the log",
            remedy: "Set fsync = on in postgresql.conf.", if: !isSynced)
        // Nodes set it themselves; `move` and other commands do not.
        note(
            .fail, "durability", "synchronous_commit is off: a crash can lose what commands wrote",
            remedy: "Set synchronous_commit = on in postgresql.conf and for the login.",
            if: !isSynchronous)
        if node.waitsForStandby {
            let (waits, confirms) = (try row.boolean(5), try row.boolean(6))
            note(.ok, "durability", "commits wait for a standby", if: waits && confirms)
            note(
                .fail, "durability",
                "cluster.durability is quorum, and commits wait for no standby",
                remedy: "Set synchronous_standby_names, or cluster.durability: primary.",
                if: !waits)
            note(
                .fail, "durability", "no standby confirms commits, so that posts wait",
                remedy: "Start a standby that synchronous_standby_names names.",
                if: waits && !confirms)
        }
        guard try row.boolean(7) else {
            note(
                .fail, "cluster", "the database has no cluster",
                remedy: "Run `timeline-gateway cluster prepare` as its owner.")
            return false
        }
        let (isOwner, isNode) = (try row.boolean(8), try row.boolean(9))
        note(
            .warn, "cluster login", "\(user) owns the tables: it may do more than a node needs",
            remedy: "Give the node a login of its own, with `cluster prepare --login`.",
            if: isOwner)
        note(
            .fail, "cluster login", "\(user) is not a member of \(ClusterAdministration.nodeRole)",
            remedy:
                "Run `timeline-gateway cluster prepare --login \(user)` as the database's owner.",
            if: !isOwner && !isNode)
        return isOwner || isNode
    }

    /// Returns whether the rows are of this program's format.
    private mutating func examineKey(
        _ connection: PostgresAdministration
    ) throws(PostgresError) -> Bool {
        let row = try connection.rows("SELECT format::bigint, secrets FROM timeline.cluster").first
        guard let row else { throw .unexpectedAnswer }
        let (format, known) = (try row.integer(0), ClusterDatabase.format)
        guard format == known else {
            note(
                .fail, "cluster", "its format is \(format), and this program's \(known)",
                remedy: "Run the same version as the other nodes.")
            return false
        }
        let secrets = row.isNull(1) ? [] : try row.bytes(1)
        let isOpen = (try? node.seal.open(secrets, for: ClusterStart.secretsPlace)) != nil
        note(.ok, "cluster.key", "opens what the cluster sealed", if: isOpen)
        note(
            .fail, "cluster.key", "does not open what the cluster sealed",
            remedy: "Give this node the key file that the other nodes have.", if: !isOpen)
        return true
    }

    /// Looks for another process of this name, by what each writes every 2 s.
    private mutating func examineName(
        _ connection: PostgresAdministration
    ) throws(PostgresError) {
        let (name, subject) = (node.name, "cluster.node")
        let sql = """
            SELECT start, (extract(epoch FROM seen) * 1000000)::bigint,
              seen > clock_timestamp() - interval '5 s',
              (SELECT max(number) FROM timeline.batch) - position
            FROM timeline.node WHERE name = $1
            """
        let first = try connection.rows(sql, [.text(name)]).first
        guard let first else { return note(.ok, subject, "\(name) has never run") }
        if try first.boolean(2) { sleep(3) }
        let second = try connection.rows(sql, [.text(name)]).first ?? first
        let remedy = "Give each node a cluster.node of its own."
        if try first.uuid(0) != second.uuid(0) {
            note(
                .fail, subject, "\(name) just began again, as two of one name do in turn",
                remedy: remedy)
        } else if try first.integer(1) == second.integer(1) {
            note(.ok, subject, "no process of the name \(name) runs now")
        } else if runsHere {
            note(.ok, subject, "\(name) runs")
        } else {
            note(.fail, subject, "\(name) runs, and not on this data directory", remedy: remedy)
        }
        let behind = try second.integer(3)
        note(
            .warn, subject, "\(name) is \(behind) batches behind",
            remedy: "See its log; a node that cannot follow any more begins anew.",
            if: behind > 10_000)
    }
}
