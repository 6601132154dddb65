import GatewayTestSupport

/// The gateways that a campaign uses: one, or the nodes of a cluster.
protocol Deployment: Sendable {
    /// The gateway for the next connection; of a cluster, each node in turn.
    var next: GatewayProcess { get }
    /// Whether the gateways are nodes that share a log.
    var isCluster: Bool { get }
    /// The end of what the gateways wrote to standard error.
    var standardErrorTail: String { get }

    /// Returns a token with the scopes of a backend and an operator, valid for `lifetime` seconds.
    func backendToken(lifetime: Int) throws -> String

    /// Returns a token for each of `clients`, in their order, valid for `lifetime` seconds.
    func clientTokens(_ clients: [String], lifetime: Int) throws -> [String]
}

extension GatewayProcess: Deployment {
    var next: GatewayProcess { self }
    var isCluster: Bool { false }

    func backendToken(lifetime: Int) throws -> String {
        try token(
            app: Game.app, scope: "catalog:write changes:write clients:write operator",
            ttl: "\(lifetime)s")
    }

    func clientTokens(_ clients: [String], lifetime: Int) throws -> [String] {
        try clientTokens(app: Game.app, clients: clients, ttl: "\(lifetime)s")
    }
}
