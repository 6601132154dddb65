import GatewayPostgres

/// The settings of a node of a fleet, fixed from its start to its end.
package struct FleetSettings: Sendable {
    /// The servers, with the login of the node.
    package let address: PostgresAddress
    /// The promise of a 202.
    package let durability: Durability.Requirement
    /// The key of the shared secrets.
    package let key: FleetKey
    /// The times of the rotation of secrets.
    package let timing: SecretTiming
    /// The limits of writes and readings.
    package let limits: BatchLimits

    package init(
        address: PostgresAddress, durability: Durability.Requirement, key: FleetKey,
        timing: SecretTiming = SecretTiming(), limits: BatchLimits = BatchLimits()
    ) {
        self.address = address
        self.durability = durability
        self.key = key
        self.timing = timing
        self.limits = limits
    }
}
