extension ClusterSettings {
    /// Reads the options of a cluster; `nil` if none names its servers.
    init?(_ layers: inout ConfigurationLayers) {
        guard let url = layers.text("cluster.url") else {
            for key in ["cluster.key", "cluster.durability", "cluster.node"]
            where layers.text(key) != nil {
                layers.fault(key, "has no effect without cluster.url")
            }
            return nil
        }
        if !["postgres://", "postgresql://"].contains(where: url.hasPrefix) {
            layers.fault("cluster.url", "must be a postgres:// URL")
        }
        // Options are shown to operators.
        let authority = url.split(separator: "/").dropFirst().first ?? ""
        let hasPassword = authority.lastIndex(of: "@").map { authority[..<$0].contains(":") }
        if hasPassword == true || url.contains("password=") {
            layers.fault("cluster.url", "must not contain a password; name a file with passfile=")
        }
        let durability = layers.text("cluster.durability").flatMap(Durability.init(rawValue:))
        // A wrong one is a fault already.
        let node = Address(layers.required("cluster.node")) ?? Address(host: "", port: 0)
        if ["0.0.0.0", "::"].contains(node.host) || node.port == 0 && !node.host.isEmpty {
            layers.fault(
                "cluster.node", "must be the host and port at which other nodes reach this one")
        }
        self.init(
            url: url, key: layers.required("cluster.key"), durability: durability ?? .quorum,
            node: node)
    }
}
