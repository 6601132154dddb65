import Foundation
import GatewaySigning
import Testing
import WidgetModel

/// Bytes of a text.
func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

/// Text of bytes.
func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

/// A small generator with a seed, so that a failure can be repeated.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// A compact text with any header and payload, signed by `key` whatever the header says.
func forge(header: String, payload: String, by key: SigningKey) throws -> [UInt8] {
    let input = Base64URL.string(bytes(header)) + "." + Base64URL.string(bytes(payload))
    return bytes(input + "." + Base64URL.string(try key.sign(bytes(input))))
}

/// A directory that is gone when the test is.
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

    /// Permission bits of a file in it.
    func mode(_ name: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")
        return try #require(attributes[.posixPermissions] as? Int)
    }

    /// Names of the files in it or in a directory in it.
    func names(in directory: String = "") throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "\(path)/\(directory)").sorted()
    }

    func write(_ content: String, to name: String) throws {
        try content.write(toFile: "\(path)/\(name)", atomically: false, encoding: .utf8)
    }
}
