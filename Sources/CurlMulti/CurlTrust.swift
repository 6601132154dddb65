/// The certificates to trust in peers.
package enum CurlTrust: Hashable, Sendable {
    case system
    /// Only the certificates of a PEM file, read for each connection.
    case file(String)
    /// Only these certificates, in PEM.
    case certificates([UInt8])

    /// Trusts only the certificates of a PEM file, or the system's if there is none.
    package init(file: String?) {
        self = file.map { .file($0) } ?? .system
    }
}
