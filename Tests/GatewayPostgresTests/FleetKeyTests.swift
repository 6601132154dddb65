import Foundation
import GatewayTestSupport
import Testing

@testable import GatewayPostgres

@Suite struct FleetKeyTests {
    private let directory = NSTemporaryDirectory() + "fleet-key-" + UUID().uuidString

    private func file(_ bytes: [UInt8], mode: Int) throws -> String {
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true)
        let path = directory + "/key"
        try? FileManager.default.removeItem(atPath: path)
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        return path
    }

    private static let bytes = [UInt8](repeating: 7, count: 32)

    private static func secret(_ bytes: [UInt8]) throws -> SecretBytes {
        try #require(
            SecretBytes(count: bytes.count) {
                $0.copyBytes(from: bytes)
                return true
            })
    }

    private static func bytes(of secret: SecretBytes) -> [UInt8] { secret.withBytes { Array($0) } }

    @Test func aKeyIsReadOnlyFromAPrivateFileOfItsSize() throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        for mode in [0o600, 0o400] {
            _ = try FleetKey(contentsOf: try file(Self.bytes, mode: mode))
        }
        func reason(_ path: String) -> String {
            do throws(SecretError) {
                _ = try FleetKey(contentsOf: path)
            } catch {
                return error.description
            }
            return "accepted"
        }
        for mode in [0o640, 0o604, 0o644, 0o660, 0o700, 0o4600] {
            let text = reason(try file(Self.bytes, mode: mode))
            #expect(text.contains("mode 0\(String(mode, radix: 8))") && text.contains("chmod 600"))
        }
        for count in [0, 31, 33, 64] {
            let path = try file([UInt8](repeating: 7, count: count), mode: 0o600)
            #expect(reason(path).contains("has \(count) bytes"))
        }
        #expect(reason(directory).contains("not a regular file"))
        #expect(reason(directory + "/none").contains("could not be opened"))
    }

    @Test func aSecretIsOpenedOnlyUnderItsKeyForItsRowAndUnchanged() throws {
        let key = FleetKey(try Self.secret(Self.bytes))
        let other = FleetKey(try Self.secret([UInt8](repeating: 8, count: 32)))
        for count in [0, 1, 16, 32, 80, 300] {
            let plain = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
            let wrapped = try key.wrap(try Self.secret(plain), kind: "kind", name: "name")
            #expect(try key.wrap(try Self.secret(plain), kind: "kind", name: "name") != wrapped)
            let opened = try key.unwrap(wrapped, kind: "kind", name: "name")
            #expect(Self.bytes(of: opened) == plain)
            for (kind, name) in [
                ("kind", "nam"), ("kinds", "name"), ("kindn", "ame"), ("", "kindname"),
            ] {
                #expect(throws: SecretError.notAuthentic(kind: kind, name: name)) {
                    try key.unwrap(wrapped, kind: kind, name: name)
                }
            }
            let refusal = SecretError.notAuthentic(kind: "kind", name: "name")
            #expect(throws: refusal) { try other.unwrap(wrapped, kind: "kind", name: "name") }
            for index in wrapped.indices {
                var changed = wrapped
                changed[index] ^= 1
                #expect(throws: refusal) { try key.unwrap(changed, kind: "kind", name: "name") }
                #expect(throws: refusal) {
                    try key.unwrap(Array(wrapped[..<index]), kind: "kind", name: "name")
                }
            }
        }
    }

    @Test func everyKindHasMaterialOfItsOwn() throws {
        let key = FleetKey(try Self.secret(Self.bytes))
        for kind in SecretKind.allCases {
            let rows = try (0..<2).map { _ in try SecretMaterial.row(of: kind, under: key) }
            #expect(rows[0].name != rows[1].name)
            let secrets = try rows.map { row in
                Self.bytes(of: try key.unwrap(row.wrapped, kind: kind.rawValue, name: row.name))
            }
            #expect(secrets[0] != secrets[1])
            switch kind {
            case .signing, .webhook, .issuer:
                #expect(secrets[0].starts(with: Array("-----BEGIN PRIVATE KEY-----".utf8)))
            case .ticket: #expect(secrets[0].count == 80)
            default: #expect(secrets[0].count == 16)
            }
        }
    }
}
