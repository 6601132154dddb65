import Foundation
import Testing

/// A directory that only its owner can read, and that is removed with the value.
final class TemporaryDirectory: Sendable {
    let path = NSTemporaryDirectory() + "adapter-" + UUID().uuidString

    init() throws {
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Returns the permission bits of a file in it.
    func mode(_ name: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")
        return try #require(attributes[.posixPermissions] as? Int)
    }

    /// Returns the names of the files in it, or in one of its directories.
    func names(in directory: String = "") throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "\(path)/\(directory)").sorted()
    }

    func write(_ content: String, to name: String) throws {
        try content.write(toFile: "\(path)/\(name)", atomically: false, encoding: .utf8)
    }
}
