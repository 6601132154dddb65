import GatewayCluster
import GatewayOperations
import GatewaySettings
import WidgetModel

extension GatewayConfiguration {
    /// The configuration of a node of a cluster; `nil` without a cluster.
    ///
    /// - Throws: ``Faults`` that name the option.
    package func nodeSettings() throws(Faults) -> ClusterNode.Configuration? {
        guard let cluster else { return nil }
        let address: PostgresAddress
        do throws(PostgresAddress.Rejection) {
            address = try PostgresAddress(cluster.url)
        } catch {
            throw Faults("cluster.url", error.description)
        }
        do throws(Seal.Fault) {
            return ClusterNode.Configuration(
                address: address, seal: try Seal(contentsOf: cluster.key),
                name: cluster.node.description, waitsForStandby: cluster.durability == .quorum)
        } catch {
            throw Faults("cluster.key", error.description)
        }
    }
}
