import GatewayFleet
import GatewayOperations
import GatewayPostgres
import GatewaySettings
import GatewaySigning
import Logging
import WidgetModel

extension GatewayConfiguration {
    /// Reads the keys that the nodes of a cluster share: returns when its servers have answered, however
    /// long that takes; `nil` without a cluster.
    ///
    /// - Throws: ``Faults`` that name the option; `PostgresError`.
    package func openFleetKeys() async throws -> FleetKeys? {
        guard let cluster else { return nil }
        let address: PostgresAddress
        do throws(PostgresAddress.Rejection) {
            address = try PostgresAddress(cluster.url)
        } catch {
            throw Faults("cluster.url", error.description)
        }
        var timing = SecretTiming()
        timing.cacheTime = publishLead
        timing.signatureLifetime = notificationLifetime
        do {
            let settings = FleetSettings(
                address: address, durability: cluster.durability == .quorum ? .quorum : .primary,
                key: try FleetKey(contentsOf: cluster.key), timing: timing)
            return try await FleetKeys.open(
                settings,
                timing: KeyRing.Timing(
                    publishLead: publishLead, signatureLifetime: notificationLifetime),
                logger: Logger(label: "timeline-gateway"))
        } catch let error as SecretError {
            throw Faults("cluster.key", error.description)
        }
    }
}
