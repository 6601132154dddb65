import APNsSimulator
import ClusterTestSupport
import GatewayCluster
import GatewayTestSupport
import Synchronization

/// A cluster under faults: its servers, its nodes, and each node's way to the servers.
final class FaultCluster: Deployment {
    let servers: ClusterFixture
    let gateways: ClusterGateways
    let nodes: [GatewayProcess]
    /// Each node's way to the primary; empty where nodes connect to the servers themselves.
    let proxies: [ServerProxy]
    /// Each node's name in the database.
    private let names: [String]
    private let turn = Atomic(0)

    /// Starts the servers and the nodes.
    ///
    /// - Parameters:
    ///   - hasQuorum: Whether commits wait for a standby.
    ///   - hasProxies: Whether nodes reach the primary through proxies.
    ///   - pushes: Whether the nodes push, each change at once.
    ///   - tokenAge: The age of the tokens that are issued, in seconds.
    ///   - environments: Variables of the nodes' processes, for the first nodes.
    init(
        hasQuorum: Bool = false, hasProxies: Bool = false, pushes: Bool = false,
        tokenAge: Int64 = 0, environments: [[String: String]] = []
    ) throws {
        guard PostgresServer.isInstalled else {
            throw RowSkipped(reason: "PostgreSQL is not installed (Debian package postgresql)")
        }
        let nodeCount: Int32 = 3
        let servers = try ClusterFixture(
            nodes: nodeCount, hasQuorum: hasQuorum, hasServer: true)
        let gateways = try ClusterGateways(
            servers, pushes: pushes, pushOptions: ["interval: 1s", "widgetsPerDay: 50000"],
            tokenAge: tokenAge)
        let names = try (0..<nodeCount).map { _ in try GatewayProcess.freeAddress() }
        let proxies =
            hasProxies ? try (0..<nodeCount).map { _ in try ServerProxy(to: servers.primary) } : []
        nodes = try (0..<Int(nodeCount)).map { index in
            let environment = index < environments.count ? environments[index] : [:]
            return try gateways.makeNode(
                Int32(index + 1), hosts: proxies.isEmpty ? nil : [proxies[index].directory],
                address: names[index], admin: GatewayProcess.freeAddress(),
                environment: environment,
                // A program written in Swift exits at once when it is the first that a library is
                // loaded into.
                wrapper: environment.isEmpty ? [] : ["env"])
        }
        (self.servers, self.gateways, self.proxies) = (servers, gateways, proxies)
        self.names = names
    }

    deinit {
        if let apns = gateways.apns { Task { await apns.stop() } }
    }

    /// Returns the place of the node that leads, and the generation of its lease; waits for one.
    func leader() throws -> (index: Int, generation: Int64) {
        let connection = try servers.administration()
        var leader: (index: Int, generation: Int64)?
        try blockUntil("led by a node") {
            let row = try connection.rows(
                "SELECT node, generation FROM timeline.leader WHERE until > clock_timestamp()"
            ).first
            guard let row, let index = try names.firstIndex(of: row.text(0)) else { return false }
            leader = (index, try row.integer(1))
            return true
        }
        guard let leader else { throw TestFailure("no node leads") }
        return leader
    }

    // MARK: As a deployment

    var isCluster: Bool { true }

    var next: GatewayProcess {
        nodes[turn.wrappingAdd(1, ordering: .relaxed).newValue % nodes.count]
    }

    var standardErrorTail: String {
        nodes.enumerated().map { "node \($0 + 1):\n\($1.standardErrorTail)" }
            .joined(separator: "\n")
    }

    func backendToken(lifetime: Int) throws -> String { try gateways.backend(lifetime: lifetime) }

    func clientTokens(_ clients: [String], lifetime: Int) throws -> [String] {
        try clients.map { try gateways.token($0, lifetime: lifetime) }
    }

    // MARK: What has to hold

    /// Requires of a run that is over that every node still runs, and that the log has no gap and
    /// names each batch once.
    func judge(_ recorder: Recorder) throws {
        for (index, node) in nodes.enumerated() {
            recorder.require(
                node.exit == nil,
                "node \(index + 1) ended with \(String(describing: node.exit)): "
                    + node.standardErrorTail)
        }
        for fault in try ClusterTables(servers).faults() { recorder.require(false, fault) }
    }
}
