import Foundation
import GatewaySigning
import WidgetModel

/// The contents of a data directory's backup, with a checksum of each file.
package struct BackupManifest: Sendable, Equatable {
    /// The manifest's file name within a backup.
    static let fileName = "manifest.json"
    /// The maximum size of a manifest, in bytes.
    static let bytesMax = 1 << 20
    static let filesMax = 1_000
    /// The version of the backup layout; another number means another version.
    static let format: Int64 = 1

    struct File: Sendable, Equatable {
        /// The path relative to the backup's root.
        let path: String
        let bytes: Int64
        /// The SHA-256, in lower-case hexadecimal.
        let sha256: String
        /// The permission bits.
        let mode: UInt32
    }

    /// The time of its creation, in RFC 3339.
    package let created: String
    /// The version of the program that created it.
    package let version: String
    /// The highest sequence of its log.
    package let head: UInt64
    /// The number of registered clients.
    package let clients: Int
    /// The number of apps with a catalog.
    package let apps: Int
    /// All files except the manifest.
    let files: [File]

    /// The total size of the files, in bytes.
    package var bytes: Int64 { files.reduce(0) { $0 + $1.bytes } }

    /// The manifest as JSON, without its checksum.
    package var json: JSONValue {
        [
            "format": .integer(Self.format), "created": .string(created),
            "version": .string(version), "head": .integer(Int64(clamping: head)),
            "clients": .integer(Int64(clients)), "apps": .integer(Int64(apps)),
            "files": .array(
                files.map {
                    [
                        "path": .string($0.path), "bytes": .integer($0.bytes),
                        "sha256": .string($0.sha256),
                        "mode": .string(String($0.mode, radix: 8)),
                    ]
                }),
        ]
    }

    /// The manifest as written, with a checksum of itself: damage to the manifest is not mistaken
    /// for damage to a file that it lists. Throws ``SigningError`` if OpenSSL runs out of memory.
    var document: [UInt8] {
        get throws(SigningError) {
            var object = json.objectValue ?? [:]
            object["sha256"] = .string(try SHA256Digest(of: json.serialized).hexadecimal)
            return JSONValue.object(object).serialized
        }
    }
}

extension BackupManifest {
    /// Reads a manifest. Throws ``Faults`` if it is of another version, or lists files outside a
    /// data directory.
    init(_ value: JSONValue) throws(Faults) {
        var object = value.objectValue ?? [:]
        guard let format = object["format"]?.integerValue else {
            throw Faults(Self.fileName, "is not a backup manifest")
        }
        guard format == Self.format else {
            throw Faults(
                Self.fileName,
                "has the format \(format), and this program reads \(Self.format): use the version "
                    + (object["version"]?.stringValue.map { "\($0.prefix(64)) " } ?? "")
                    + "that made the backup")
        }
        let checksum = object["sha256"]?.stringValue
        object["sha256"] = nil
        let digest = try? SHA256Digest(of: JSONValue.object(object).serialized)
        guard let checksum, checksum == digest?.hexadecimal else {
            throw Faults(Self.fileName, "is damaged or was modified")
        }
        guard let created = object["created"]?.stringValue,
            let version = object["version"]?.stringValue,
            let head = object["head"]?.integerValue.flatMap({ UInt64(exactly: $0) }),
            let clients = object["clients"]?.integerValue,
            let apps = object["apps"]?.integerValue, let files = object["files"]?.arrayValue,
            files.count <= Self.filesMax
        else { throw Faults(Self.fileName, "is incomplete") }
        self.init(
            created: created, version: version, head: head, clients: Int(clamping: clients),
            apps: Int(clamping: apps), files: try Self.files(files))
        guard self.files.contains(where: { $0.path == DataDirectory.databaseName }) else {
            throw Faults(Self.fileName, "names no database")
        }
    }

    private static func files(_ values: [JSONValue]) throws(Faults) -> [File] {
        var files: [File] = []
        for (index, value) in values.enumerated() {
            let object = value.objectValue ?? [:]
            guard let path = object["path"]?.stringValue, DataDirectory.isBackedUp(path),
                !files.contains(where: { $0.path == path }),
                let bytes = object["bytes"]?.integerValue, bytes >= 0,
                let sha256 = object["sha256"]?.stringValue,
                let mode = object["mode"]?.stringValue.flatMap({ UInt32($0, radix: 8) }),
                mode & ~0o777 == 0
            else {
                throw Faults(
                    "\(Self.fileName): files[\(index)]", "is not a file of a data directory")
            }
            files.append(File(path: path, bytes: bytes, sha256: sha256, mode: mode))
        }
        return files
    }
}

extension DataDirectory {
    static var databaseName: String { "store.sqlite" }
    /// The files and directories that a backup contains in addition to the database.
    static let backedUp = ["gateway.json", "keys", "issuer", "webhooks", "certs"]

    /// Whether backups contain a path, relative to the directory's root.
    static func isBackedUp(_ path: String) -> Bool {
        if path == databaseName { return true }
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard let first = parts.first, backedUp.contains(String(first)) else { return false }
        let isFile = first.contains(".")
        guard parts.count == (isFile ? 1 : 2), let last = parts.last else { return false }
        return isFile || isFileName(last)
    }

    /// Whether a name is that of a file in a key directory; files left incomplete by a crash are
    /// not.
    private static func isFileName(_ name: some StringProtocol) -> Bool {
        !name.isEmpty && !name.hasPrefix(".") && !name.hasSuffix(".tmp")
            && name.utf8.allSatisfy { $0.isLetterOrDigit || "-_.".utf8.contains($0) }
    }
}
