import Foundation
import GatewayEngine

/// Tells a data directory that lost a part from one that never had it.
struct DataDirectoryInventory: Equatable {
    /// The files of a ring of keys that exist.
    struct Ring: Equatable {
        /// Whether its manifest exists.
        var hasManifest = false
        /// Number of files of keys.
        var keyFiles = 0
    }

    /// Whether the database has any content.
    var hasDatabase = false
    /// Whether the write-ahead log has any content.
    var hasWriteAheadLog = false
    /// Whether the directory knows its URLs.
    var hasIdentity = false
    /// The state of each ring.
    var rings: [KeyRingName: Ring] = [:]

    /// Whether a gateway was served from the directory before, as files beside the database show.
    /// Certificates alone show nothing: they may be put there before the first start.
    var showsEarlierUse: Bool {
        hasIdentity || hasWriteAheadLog
            || rings.values.contains { $0.hasManifest || $0.keyFiles > 0 }
    }

    /// Whether the database is gone.
    var lacksDatabase: Bool { showsEarlierUse && !hasDatabase }

    /// Returns the rings that are gone.
    ///
    /// - Parameters:
    ///   - noted: The rings that the database knows to have existed; `nil` if it was written before
    ///     they were noted.
    ///   - hasEpochs: Whether a gateway was ever served from the database.
    ///   - enabled: The rings that are asked for now.
    func lostRings(
        noted: Set<KeyRingName>?, hasEpochs: Bool, enabled: Set<KeyRingName>
    ) -> [DataDirectoryLoss.Part] {
        // Every gateway has keys of notifications.
        let existed = noted ?? (hasEpochs ? [.notifications] : [])
        return KeyRingName.allCases.filter { existed.contains($0) && enabled.contains($0) }
            .compactMap { name in
                let ring = rings[name] ?? Ring()
                return ring.hasManifest ? nil : .ring(name, keyFiles: ring.keyFiles)
            }
    }
}

extension DataDirectory {
    /// The inventory at this moment.
    var inventory: DataDirectoryInventory {
        var inventory = DataDirectoryInventory()
        func hasContent(_ name: String) -> Bool {
            (DurableFiles.Listed(path, name)?.bytes ?? 0) > 0
        }
        inventory.hasDatabase = hasContent(Self.databaseName)
        inventory.hasWriteAheadLog = hasContent(Self.databaseName + "-wal")
        inventory.hasIdentity = hasContent("gateway.json")
        for name in KeyRingName.allCases {
            let files = DurableFiles.list(path + "/" + name.rawValue).map(\.name)
            inventory.rings[name] = DataDirectoryInventory.Ring(
                hasManifest: files.contains("ring.json"),
                keyFiles: files.count { $0.hasSuffix(".pem") })
        }
        return inventory
    }
}
