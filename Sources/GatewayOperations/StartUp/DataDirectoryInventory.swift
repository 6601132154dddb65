import Foundation

/// Distinguishes a data directory that lost a part from one that never had it.
struct DataDirectoryInventory: Equatable {
    /// The existing files of a key ring.
    struct Ring: Equatable {
        var hasManifest = false
        var keyFiles = 0
    }

    var hasDatabase = false
    var hasWriteAheadLog = false
    /// Whether the directory has a record of its URLs.
    var hasIdentity = false
    var rings: [KeyRingName: Ring] = [:]

    /// Whether a gateway was served from the directory before, as shown by files other than the
    /// database. Certificates alone show nothing: they may be put there before the first start.
    var showsEarlierUse: Bool {
        hasIdentity || hasWriteAheadLog
            || rings.values.contains { $0.hasManifest || $0.keyFiles > 0 }
    }

    var lacksDatabase: Bool { showsEarlierUse && !hasDatabase }

    /// Returns the missing rings.
    ///
    /// - Parameters:
    ///   - noted: The rings recorded in the database; `nil` if it predates that record.
    ///   - hasEpochs: Whether a gateway was ever served from the database.
    ///   - enabled: The rings required now.
    func lostRings(
        noted: Set<KeyRingName>?, hasEpochs: Bool, enabled: Set<KeyRingName>
    ) -> [DataDirectoryLoss.Part] {
        // Every gateway has notification keys.
        let existed = noted ?? (hasEpochs ? [.notifications] : [])
        return KeyRingName.allCases.filter { existed.contains($0) && enabled.contains($0) }
            .compactMap { name in
                let ring = rings[name] ?? Ring()
                return ring.hasManifest ? nil : .ring(name, keyFiles: ring.keyFiles)
            }
    }
}

extension DataDirectory {
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
