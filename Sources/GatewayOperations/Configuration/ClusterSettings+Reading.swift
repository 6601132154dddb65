import GatewaySettings

extension ClusterSettings {
    /// Reads the options of a cluster; `nil` if none names its servers.
    init?(_ layers: inout ConfigurationLayers) {
        guard let url = layers.text("cluster.url") else {
            for key in ["cluster.key", "cluster.durability"] where layers.text(key) != nil {
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
        self.init(
            url: url, key: layers.required("cluster.key"), durability: durability ?? .quorum)
    }
}
