import Foundation
import Testing

@testable import GatewayOperations

/// Paths that a configuration may name.
@Suite struct ConfigurationFileTests {
    @Test func `only regular files are read, and none waits`() throws {
        let directory = FileManager.default.temporaryDirectory
            .appending(path: "files-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let (text, empty, pipe) = (
            directory.appending(path: "text").path, directory.appending(path: "empty").path,
            directory.appending(path: "pipe").path
        )
        try Data("text".utf8).write(to: URL(fileURLWithPath: text))
        try Data().write(to: URL(fileURLWithPath: empty))
        try #require(mkfifo(pipe, 0o600) == 0)
        #expect(ConfigurationFile.contents(of: text) == Data("text".utf8))
        #expect(ConfigurationFile.contents(of: empty) == Data())
        for path in [pipe, "/dev/zero", "/dev/null", directory.path, directory.path + "/none", ""] {
            #expect(ConfigurationFile.contents(of: path) == nil, "\(path)")
        }
        let large = directory.appending(path: "large").path
        _ = FileManager.default.createFile(atPath: large, contents: nil)
        try #require(truncate(large, ConfigurationFile.bytesMax + 1) == 0)
        #expect(ConfigurationFile.contents(of: large) == nil)
    }
}
