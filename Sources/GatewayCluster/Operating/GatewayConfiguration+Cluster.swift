import GatewayOperations
import WidgetModel

extension GatewayConfiguration {
    /// The configuration of a node of a cluster; `nil` without a cluster.
    ///
    /// - Throws: ``Faults`` that name the options.
    package func nodeSettings() throws(Faults) -> ClusterNode.Configuration? {
        guard let cluster else { return nil }
        var faults = Faults()
        var address: PostgresAddress?
        var seal: Seal?
        do throws(PostgresAddress.Rejection) {
            address = try PostgresAddress(cluster.url)
        } catch {
            faults.add("cluster.url", error.description)
        }
        do throws(Seal.Fault) {
            seal = try Seal(contentsOf: cluster.key)
        } catch {
            faults.add("cluster.key", error.description)
        }
        guard let address, let seal else { throw faults }
        return ClusterNode.Configuration(
            address: address, seal: seal, name: cluster.node.description,
            waitsForStandby: cluster.durability == .quorum)
    }
}
