import Foundation
import GatewayDocuments
import GatewayStorage
import WidgetModel

/// Backup: copies a data directory so that a gateway can continue with the copy.
extension DataDirectory {
    /// Receives the progress of long work, in bytes.
    package typealias Progress = (_ done: Int64, _ total: Int64) -> Void

    /// The maximum number of copy attempts for files that change in the meantime.
    private static let triesMax = 10

    /// Makes a backup at `target`, a directory that must not exist. The gateway may be running.
    ///
    /// The log, the registrations, the pending pushes and the epochs are in one database and
    /// therefore from one point in time. Keys are copied afterwards; a key created in between does
    /// no harm. The backup takes its final name when it is complete. It contains private keys.
    ///
    /// - Throws: ``Faults``, `StoreError`, `SigningError`; then nothing is left at `target`.
    package func backup(to target: String, progress: @escaping Progress = { _, _ in }) throws
        -> BackupManifest
    {
        try requireServed()
        guard FileManager.default.fileExists(atPath: path + "/" + Self.databaseName) else {
            throw Faults("data", "\(path) contains no log: no gateway has used it")
        }
        let target = target.hasSuffix("/") && target.count > 1 ? String(target.dropLast()) : target
        guard !Self.exists(target) else {
            throw Faults("to", "\(target) already exists; choose another path")
        }
        let staging = target + ".partial"
        guard !Self.exists(staging) else {
            throw Faults(
                "to", "\(staging) exists: a backup is running or was interrupted; remove it")
        }
        let bytes = try StoreCopy.bytes(of: path) + Self.backedUp.reduce(0) { $0 + size(of: $1) }
        try FreeSpace.require(bytes, in: Self.parent(of: target), option: "to", of: "backup")
        try DurableFiles.makeDirectory(staging)
        do {
            let manifest = try fill(staging, progress)
            try DurableFiles.move(staging, to: target)
            try DurableFiles.seal(directory: Self.parent(of: target))
            return manifest
        } catch {
            let cause = FreeSpace.isExhausted(in: staging)
            try? FileManager.default.removeItem(atPath: staging)
            // Other processes may have filled the disk in the meantime.
            if cause {
                throw FreeSpace.lack(bytes, in: Self.parent(of: target), option: "to", of: "backup")
            }
            throw error
        }
    }

    /// The size of a file, or of the files in a directory, in bytes.
    private func size(of name: String) -> Int64 {
        let listed =
            name.contains(".")
            ? [DurableFiles.Listed(path, name)].compactMap { $0 } : files(of: name)
        return listed.reduce(0) { $0 + $1.bytes }
    }

    private func fill(_ staging: String, _ progress: @escaping Progress) throws -> BackupManifest {
        let database = staging + "/" + Self.databaseName
        try StoreCopy.make(of: path, to: database, progress: progress)
        let copy = try StoreCopy(checking: database)
        let sha256 = try DurableFiles.seal(database, named: Self.databaseName)
        guard let listed = DurableFiles.Listed(staging, Self.databaseName) else {
            throw Faults(Self.databaseName, "is missing")
        }
        var files = [
            BackupManifest.File(
                path: Self.databaseName, bytes: listed.bytes, sha256: sha256, mode: 0o600)
        ]
        for name in Self.backedUp { files += try copyAll(name, to: staging) }
        let manifest = BackupManifest(
            created: timestamp(now * 1000), version: productVersion, head: copy.head,
            clients: copy.clients, apps: copy.apps, files: files)
        let document = staging + "/" + BackupManifest.fileName
        guard
            FileManager.default.createFile(
                atPath: document, contents: Data(try manifest.document),
                attributes: [.posixPermissions: 0o600])
        else { throw Faults(BackupManifest.fileName, "cannot be written") }
        _ = try DurableFiles.seal(document, named: BackupManifest.fileName)
        try DurableFiles.seal(directory: staging)
        return manifest
    }

    /// Copies a file, or the files of a directory, in their state at one moment.
    private func copyAll(_ name: String, to staging: String) throws -> [BackupManifest.File] {
        if name.contains(".") {
            // The file is always replaced as a whole, so it is never half written.
            guard let file = DurableFiles.Listed(path, name) else { return [] }
            return [try copy(file, from: path, to: staging, as: name)]
        }
        let (source, target) = (path + "/" + name, staging + "/" + name)
        for _ in 0..<Self.triesMax {
            let listed = files(of: name)
            guard !listed.isEmpty else { return [] }
            try DurableFiles.makeDirectory(target)
            // A file removed in the meantime counts as a change like any other.
            let copied = try? listed.map {
                try copy($0, from: source, to: target, as: name + "/" + $0.name)
            }
            if let copied, listed == files(of: name) {
                try DurableFiles.seal(directory: target)
                return copied
            }
            try FileManager.default.removeItem(atPath: target)
        }
        throw Faults(name, "cannot be read completely, or keeps changing")
    }

    private func files(of directory: String) -> [DurableFiles.Listed] {
        DurableFiles.list(path + "/" + directory).filter {
            Self.isBackedUp(directory + "/" + $0.name)
        }
    }

    private func copy(
        _ file: DurableFiles.Listed, from source: String, to target: String, as name: String
    ) throws -> BackupManifest.File {
        let copied = try DurableFiles.copy(
            source + "/" + file.name, to: target + "/" + file.name, mode: file.mode, named: name)
        return BackupManifest.File(
            path: name, bytes: copied.bytes, sha256: copied.sha256, mode: file.mode)
    }

    static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    static func parent(of path: String) -> String {
        let parent = (path as NSString).deletingLastPathComponent
        return parent.isEmpty ? "." : parent
    }
}
