/// The rows of a cluster, three gateways on PostgreSQL.
extension Row {
    private init(
        cluster name: String, _ summary: String, seconds: Double = 15,
        run: @escaping @Sendable (RowContext) throws -> Void
    ) {
        self.init(
            name: name, finding: "cluster", summary: summary, seconds: seconds,
            run: run)
    }

    static let cluster = [
        Row(cluster: "nodes-killed", "kill -9 of one or two of three nodes") {
            try $0.nodesKilled()
        },
        Row(cluster: "nodes-stopped", "SIGSTOP of a node, also for longer than its lease") {
            try $0.nodesStopped()
        },
        Row(cluster: "rolling-restart", "SIGTERM and start of every node in turn") {
            try $0.rollingRestart()
        },
        Row(cluster: "catalog-race", "catalogs put by three at the same time, with kills") {
            try $0.catalogRace()
        },
        Row(cluster: "node-clocks", "clocks of nodes a day ahead and behind") {
            try $0.nodeClocks()
        },
        Row(cluster: "primary-killed", "power loss of the database server") {
            try $0.primaryKilled()
        },
        Row(cluster: "fail-over", "the primary is lost, its standby promoted") {
            try $0.failOver()
        },
        Row(cluster: "quorum-lost", "the standby goes away; the setting is emptied") {
            try $0.quorumLost()
        },
        Row(cluster: "cut", "connections of nodes are cut at any byte, or silent") {
            try $0.connectionsCut()
        },
        Row(cluster: "server-silent", "SIGSTOP of the database server for seconds") {
            try $0.serverSilent()
        },
        Row(cluster: "restored", "an older copy of the database") { try $0.databaseRestored() },
        Row(cluster: "old-snapshot", "a transaction with an old snapshot", seconds: 600) {
            try $0.oldSnapshot()
        },
        Row(
            cluster: "leader-away", "the leader is killed, paused for 20 s or cut off; with pushes",
            seconds: 120
        ) { try $0.leaderAway() },
    ]
}
