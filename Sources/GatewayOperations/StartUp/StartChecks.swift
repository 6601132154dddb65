import Foundation
import GatewayCore
import GatewaySigning
import GatewayStorage
import WidgetModel

/// The checks of a data directory that a gateway makes before it serves from it, in order.
///
/// `serve` makes them one by one during its start and stops at the first failure;
/// `timelinectl doctor` makes all of them, changes nothing and reports every failure.
package struct StartChecks {
    let configuration: GatewayConfiguration
    /// Whether to continue without missing parts.
    let acceptsLoss: Bool
    /// Called with each part that a start continues without.
    private let noteLoss: (DataDirectoryLoss.Part) -> Void
    /// The inventory taken before anything was opened.
    private let inventory: DataDirectoryInventory

    /// Creates the checks of a configuration's data directory in its present state.
    package init(
        configuration: GatewayConfiguration, acceptsLoss: Bool = false,
        noteLoss: @escaping (DataDirectoryLoss.Part) -> Void = { _ in }
    ) {
        self.configuration = configuration
        self.acceptsLoss = acceptsLoss
        self.noteLoss = noteLoss
        inventory = DataDirectory(configuration.data).inventory
    }

    var rings: [(name: KeyRingName, timing: KeyRing.Timing)] {
        Self.rings(of: configuration)
    }

    /// Returns the rings that a gateway with a configuration opens.
    package static func rings(
        of configuration: GatewayConfiguration
    ) -> [(name: KeyRingName, timing: KeyRing.Timing)] {
        var rings = [
            (
                KeyRingName.notifications,
                KeyRing.Timing(
                    publishLead: configuration.publishLead,
                    signatureLifetime: configuration.notificationLifetime)
            )
        ]
        if configuration.localIssuer { rings.append((.tokens, KeyRing.Timing.tokens)) }
        // Questions to sources of content are signed as webhooks are.
        if configuration.push.isActive {
            rings.append((.webhooks, KeyRing.Timing.webhooks))
        }
        return rings
    }

    /// Checks that the directory has not lost its database. Returns the mode in which to open the
    /// store. Throws ``DataDirectoryLoss``.
    package func database() throws -> SQLiteStore.Opening {
        guard acceptsLoss || !inventory.lacksDatabase else { throw loss([.database]) }
        return inventory.showsEarlierUse && !acceptsLoss ? .existing : .createIfMissing
    }

    /// Checks that the store is not that of a node, whose log would have two ends. Throws
    /// ``Faults`` or `StoreError`.
    package func requireAlone(_ store: SQLiteStore) throws {
        guard try store.replicationPosition() == nil else {
            throw Faults(
                "data",
                "\(configuration.data) is that of a node of a cluster: set cluster.url")
        }
    }

    /// Checks that the directory has not lost a key ring recorded in the store. Throws
    /// ``DataDirectoryLoss`` or `StoreError`.
    package func rings(knownTo store: SQLiteStore) throws {
        if store.isNew, inventory.showsEarlierUse { try refuse([.database]) }
        let noted = try store.notedRings().map { Set($0.compactMap(KeyRingName.init)) }
        let lost = inventory.lostRings(
            noted: noted, hasEpochs: try !store.epochs().isEmpty,
            enabled: Set(rings.map(\.name)))
        if !lost.isEmpty { try refuse(lost) }
    }

    private func refuse(_ parts: [DataDirectoryLoss.Part]) throws {
        guard acceptsLoss else { throw loss(parts) }
        parts.forEach(noteLoss)
    }

    /// Reads a ring, if it exists. Throws ``SigningError``.
    func keys(of name: KeyRingName) throws {
        guard let ring = rings.first(where: { $0.name == name }),
            inventory.rings[name]?.hasManifest == true
        else { return }
        _ = try KeyRingStore(directory: configuration.data + "/" + name.rawValue)
            .openExisting(timing: ring.timing)
    }

    /// Reads everything that a start rebuilds from the store. Throws `StoreError`, and errors for
    /// unreadable rows.
    func log(of store: SQLiteStore) throws {
        _ = try LogReplay(
            of: store, limits: configuration.limits, coreLimits: configuration.coreLimits)
        try store.pushClients { rows in
            for payload in rows.compactMap(\.payload) {
                _ = try PushScheduler.SavedClient(payload, budget: .init(), now: 0, wall: 0)
            }
        }
    }

    /// The error for the loss of some parts.
    package func loss(_ parts: [DataDirectoryLoss.Part]) -> DataDirectoryLoss {
        DataDirectoryLoss(directory: configuration.data, parts: parts)
    }
}
