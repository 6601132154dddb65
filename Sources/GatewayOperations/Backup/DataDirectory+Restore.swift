import Foundation
import GatewayStorage
import WidgetModel

extension DataDirectory {
    /// The directory that holds an unfinished restore.
    private static let stagingName = ".restoring"
    /// The names allowed in an empty directory, left by a file system or a gateway that never
    /// began.
    private static let emptyNames: Set<String> = [DirectoryLock.fileName, "lost+found"]

    package struct Restored: Sendable {
        package let manifest: BackupManifest
        package let epoch: Int64
    }

    /// Restores a backup into this directory, which must be empty or missing, and opens an epoch
    /// that voids every older cursor: changes accepted after the backup are lost, and no client may
    /// assume that it received them.
    ///
    /// Every file is checked against its checksum, and the database is read completely, before any
    /// file receives its final name. An interrupted restore leaves a directory that no gateway
    /// starts on.
    ///
    /// - Throws: ``Faults`` that name the file, `StoreError` (`alreadyInUse` while a gateway runs
    ///   on the directory), `SigningError`.
    package func restore(
        from backup: String, progress: Progress = { _, _ in }
    ) async throws -> Restored {
        let manifest = try Self.manifest(of: backup)
        let isNew = !Self.exists(path)
        let lock = try DirectoryLock(directory: path)
        defer { lock.release() }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        guard Set(names).isSubset(of: Self.emptyNames) else {
            throw Faults(
                "data",
                names.contains(Self.stagingName)
                    ? "a restore into \(path) was interrupted; empty it and restore again"
                    : "\(path) is not empty; choose an empty directory")
        }
        let staging = path + "/" + Self.stagingName
        do {
            try FreeSpace.require(
                manifest.bytes, in: path, option: "data", of: "restored directory")
            try DurableFiles.makeDirectory(staging)
        } catch {
            if isNew { try? FileManager.default.removeItem(atPath: path) }
            throw error
        }
        let epoch: Int64
        do {
            try Self.copy(manifest, from: backup, to: staging, progress)
            epoch = try await DataDirectory(staging).openRestoredEpoch(manifest)
        } catch {
            try? FileManager.default.removeItem(atPath: staging)
            if isNew { try? FileManager.default.removeItem(atPath: path) }
            throw error
        }
        // From here on an interrupted restore remains as it is, so that no gateway starts on it.
        try settle(staging)
        return Restored(manifest: manifest, epoch: epoch)
    }

    /// Throws ``Faults`` if an unfinished restore is in the directory.
    func requireNoRestore() throws(Faults) {
        guard !Self.exists(path + "/" + Self.stagingName) else {
            throw Faults(
                "data", "a restore into \(path) was interrupted; empty it and restore again")
        }
    }

    private static func manifest(of backup: String) throws(Faults) -> BackupManifest {
        let path = backup + "/" + BackupManifest.fileName
        guard let handle = FileHandle(forReadingAtPath: path),
            let data = try? handle.read(upToCount: BackupManifest.bytesMax + 1)
        else {
            throw Faults("from", "\(backup) is not a backup: it has no \(BackupManifest.fileName)")
        }
        guard data.count <= BackupManifest.bytesMax,
            let value = try? JSONValue(parsing: Array(data))
        else { throw Faults(BackupManifest.fileName, "cannot be read: it is damaged") }
        return try BackupManifest(value)
    }

    private static func copy(
        _ manifest: BackupManifest, from backup: String, to staging: String, _ progress: Progress
    ) throws {
        var done: Int64 = 0
        for directory in Set(manifest.files.compactMap { Self.directory(of: $0.path) }) {
            try DurableFiles.makeDirectory(staging + "/" + directory)
        }
        for file in manifest.files {
            let copied = try DurableFiles.copy(
                backup + "/" + file.path, to: staging + "/" + file.path, mode: file.mode,
                named: file.path)
            guard copied.bytes == file.bytes, copied.sha256 == file.sha256 else {
                throw Faults(
                    file.path, "does not match its checksum: the file is damaged or modified")
            }
            done += copied.bytes
            progress(done, manifest.bytes)
        }
    }

    private static func directory(of path: String) -> String? {
        let parts = path.split(separator: "/")
        return parts.count > 1 ? parts.first.map(String.init) : nil
    }

    /// Reads the restored database completely, and opens an epoch in it.
    private func openRestoredEpoch(_ manifest: BackupManifest) async throws -> Int64 {
        let database = path + "/" + Self.databaseName
        let copy: StoreCopy
        do {
            copy = try StoreCopy(checking: database)
        } catch StoreError.corrupt(let reason) {
            throw Faults(Self.databaseName, "is damaged: \(reason)")
        }
        guard copy.head == manifest.head else {
            throw Faults(Self.databaseName, "does not end at the sequence in the manifest")
        }
        let epoch = try await openNewEpoch()
        _ = try DurableFiles.seal(database, named: Self.databaseName)
        return epoch
    }

    /// Moves all files to their final names, the database last: a gateway without one would start
    /// from scratch.
    private func settle(_ staging: String) throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: staging)
            .filter { $0 != DirectoryLock.fileName }
        for name in names where DurableFiles.Listed(staging, name) == nil {
            try DurableFiles.seal(directory: staging + "/" + name)
        }
        for name in names.filter({ $0 != Self.databaseName }) + [Self.databaseName] {
            try DurableFiles.move(staging + "/" + name, to: path + "/" + name)
        }
        try DurableFiles.seal(directory: path)
        try FileManager.default.removeItem(atPath: staging)
        try DurableFiles.seal(directory: path)
    }
}
