import Foundation
import GatewayTestSupport

/// Makes a directory that is removed when the tests end; returns its path.
func temporaryDirectory() throws -> String { try GatewayProcess.temporaryDirectory() }

/// Writes a file; returns its path.
///
/// - Parameter folder: Its directory; a new one when `nil`.
func temporaryFile(
    _ text: String, named name: String = "gateway.yaml", in folder: String? = nil
) throws -> String {
    let path = try (folder ?? temporaryDirectory()) + "/" + name
    try text.write(toFile: path, atomically: false, encoding: .utf8)
    return path
}
