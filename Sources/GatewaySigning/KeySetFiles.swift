import WidgetModel

/// The key sets that were fetched from issuers, stored so that a gateway that starts while an issuer
/// cannot be reached knows its keys.
package struct KeySetFiles: Sendable {
    private let directory: String

    /// Refers to the sets in a data directory without accessing it.
    package init(data: String) {
        directory = data + "/issuer-keys"
    }

    private func path(of url: String) throws(SigningError) -> String {
        let digest = try SHA256Digest(of: Array(url.utf8))
        return "\(directory)/\(Base64.url.string(digest.bytes)).json"
    }

    /// Returns the last set stored for a URL; `nil` if there is none that can be read.
    package func read(of url: String) -> JWKSet? {
        do throws(SigningError) {
            return try JWKSet(
                parsing: PrivateFile.read(try path(of: url), bytesMax: JWKSet.bytesMax))
        } catch {
            return nil
        }
    }

    /// Stores a set, atomically and durably. Throws ``SigningError`` (`fileFailed`,
    /// `cryptoFailed`).
    package func write(_ set: JWKSet, of url: String) throws(SigningError) {
        try PrivateFile.makeDirectory(directory)
        try PrivateFile.replace(try path(of: url), with: set.serialized)
    }
}
