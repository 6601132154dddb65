import Foundation
import GatewayEngine
import GatewaySigning
import WidgetModel

/// What a backup of a data directory holds, and what each of its files is known by.
package struct BackupManifest: Sendable, Equatable {
    /// Its name within a backup.
    static let fileName = "manifest.json"
    /// Longest manifest that is read, in bytes.
    static let bytesMax = 1 << 20
    /// Most files of a backup.
    static let filesMax = 1_000
    /// How backups are laid out; one with another number is of another version.
    static let format: Int64 = 1

    /// One file.
    struct File: Sendable, Equatable {
        /// Where it is, from the backup's top.
        let path: String
        /// Its length.
        let bytes: Int64
        /// Its SHA-256, in lower case hexadecimal.
        let sha256: String
        /// Who may do what with it.
        let mode: UInt32
    }

    /// When it was made, RFC 3339.
    package let created: String
    /// The version of the program that made it.
    package let version: String
    /// Highest sequence of its log.
    package let head: UInt64
    /// Clients registered in it.
    package let clients: Int
    /// Apps with a catalog in it.
    package let apps: Int
    /// Every file but this one.
    let files: [File]

    /// Bytes of all files.
    package var bytes: Int64 { files.reduce(0) { $0 + $1.bytes } }

    /// The manifest as it is written.
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

    /// The manifest as it is written: with a checksum of itself, so that damage to it is not taken
    /// for damage to a file that it names.
    ///
    /// - Throws: ``SigningError`` when OpenSSL has no memory.
    var document: [UInt8] {
        get throws(SigningError) {
            var object = json.objectValue ?? [:]
            object["sha256"] = .string(try SHA256Digest(of: json.serialized).hexadecimal)
            return JSONValue.object(object).serialized
        }
    }

    init(
        created: String, version: String, head: UInt64, clients: Int, apps: Int, files: [File]
    ) {
        self.created = created
        self.version = version
        self.head = head
        self.clients = clients
        self.apps = apps
        self.files = files
    }

    /// Reads a manifest.
    ///
    /// - Throws: ``Faults``: not one of this version, or one that names files outside of a data
    ///   directory.
    init(_ value: JSONValue) throws(Faults) {
        var object = value.objectValue ?? [:]
        guard let format = object["format"]?.integerValue else {
            throw Faults(Self.fileName, "is no manifest of a backup")
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
            throw Faults(Self.fileName, "is damaged or was changed: it is not as it was written")
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
                    "\(Self.fileName): files[\(index)]", "is no file of a data directory")
            }
            files.append(File(path: path, bytes: bytes, sha256: sha256, mode: mode))
        }
        return files
    }
}

extension DataDirectory {
    /// The database's name.
    static var databaseName: String { "store.sqlite" }
    /// What a backup takes beside the database: files, and directories of files.
    static let backedUp = ["gateway.json", "keys", "issuer", "webhooks", "certs"]

    /// Whether a path, from the directory's top, is one that backups have.
    static func isBackedUp(_ path: String) -> Bool {
        if path == databaseName { return true }
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard let first = parts.first, backedUp.contains(String(first)) else { return false }
        let isFile = first.contains(".")
        guard parts.count == (isFile ? 1 : 2), let last = parts.last else { return false }
        return isFile || isFileName(last)
    }

    /// A name of a file beside which a key is kept; what a crash left half written is none.
    private static func isFileName(_ name: some StringProtocol) -> Bool {
        !name.isEmpty && !name.hasPrefix(".") && !name.hasSuffix(".tmp")
            && name.utf8.allSatisfy {
                switch $0 {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
                    UInt8(ascii: "."):
                    true
                default: false
                }
            }
    }
}
