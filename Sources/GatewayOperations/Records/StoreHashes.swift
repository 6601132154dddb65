import Foundation
import GatewayCore
import GatewaySigning

/// The keyed hashes of a data directory, each with a key of its own: a hash that one use shows, of
/// input that a peer chose, is worth nothing in another.
package struct StoreHashes: Sendable {
    /// Seals cursors, and identifies push addresses and messages. All outlive the process, so its
    /// key is the stored secret itself. Their inputs never coincide: a cursor's is three words, the
    /// first of them 2, a message's five; what a peer chooses is text without control characters.
    package let stored: SipHash
    /// Identifies dependency keys, whose versions each start computes again.
    package let keys: SipHash
    /// Makes the entity tags of catalogs, which are handed out.
    package let documents: SipHash

    /// - Throws: ``SigningError`` when OpenSSL cannot derive a key.
    package init(secret: Data) throws(SigningError) {
        let secret = Array(secret)
        func hash(for use: String) throws(SigningError) -> SipHash {
            SipHash(
                secret: try derivedKey(from: secret, for: "timeline-gateway \(use)", count: 16))
        }
        stored = SipHash(secret: secret)
        keys = try hash(for: "dependency keys")
        documents = try hash(for: "entity tags")
    }
}
