import Foundation
import Testing

@testable import GatewayOperations

/// Paths that a configuration may name.
@Suite struct ConfigurationFileTests {
    @Test func `only regular files are read, and none waits`() throws {
        let directory = try temporaryDirectory()
        let text = try temporaryFile("text", named: "text", in: directory)
        let empty = try temporaryFile("", named: "empty", in: directory)
        let pipe = directory + "/pipe"
        try #require(mkfifo(pipe, 0o600) == 0)
        #expect(ConfigurationFile.contents(of: text) == Data("text".utf8))
        #expect(ConfigurationFile.contents(of: empty) == Data())
        for path in [pipe, "/dev/zero", "/dev/null", directory, directory + "/none", ""] {
            #expect(ConfigurationFile.contents(of: path) == nil, "\(path)")
        }
        let large = directory + "/large"
        _ = FileManager.default.createFile(atPath: large, contents: nil)
        try #require(truncate(large, ConfigurationFile.bytesMax + 1) == 0)
        #expect(ConfigurationFile.contents(of: large) == nil)
    }
}
