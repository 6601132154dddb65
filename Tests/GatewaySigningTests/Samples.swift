import Foundation
import GatewaySigning
import Testing
import WidgetModel

/// Returns the bytes of a text.
func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

/// Returns the text of bytes.
func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

/// Returns a compact JWS with any header and payload, signed with `key` whatever the header says.
func forge(header: String, payload: String, by key: SigningKey) throws -> [UInt8] {
    let input = Base64.url.string(bytes(header)) + "." + Base64.url.string(bytes(payload))
    return bytes(input + "." + Base64.url.string(try key.sign(bytes(input))))
}

/// A directory that is removed at the end of the test.
final class TemporaryDirectory {
    let path: String

    init() throws {
        let url = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
        path = url.path
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
