import GatewayFleet
import GatewayOperations
import GatewayPostgres
import GatewaySettings
import GatewaySigning
import Logging
import WidgetModel

extension GatewayConfiguration {
    /// Returns the local issuer of the cluster; `nil` without a cluster.
    ///
    /// - Throws: ``Faults`` that name the option; `PostgresError`.
    package func clusterTokenIssuer() async throws -> TokenIssuer? {
        // Somebody waits for a command.
        guard let keys = try await openFleetKeys(within: .seconds(10)) else { return nil }
        guard localIssuer, let publicURL, let key = keys.tokens?.signingKey else {
            throw Faults("localIssuer", "must be true, or no gateway accepts the token")
        }
        return TokenIssuer(key: key, iss: LocalIssuer.name, aud: publicURL)
    }

    /// Reads the keys that the nodes of a cluster share, once its servers have answered; `nil` without
    /// a cluster.
    ///
    /// - Parameter patience: The longest wait; `nil` to wait however long that takes.
    /// - Throws: ``Faults`` that name the option; `PostgresError`.
    package func openFleetKeys(within patience: Duration? = nil) async throws -> FleetKeys? {
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
                patience: patience, logger: Logger(label: "timeline-gateway"))
        } catch let error as SecretError {
            throw Faults("cluster.key", error.description)
        }
    }
}
