import Foundation
import GatewayCore

/// Computes the 64-bit fingerprint that indexes an event: a hash of its name with the database's
/// key.
///
/// Event names are long and arrive in random order. If they were indexed directly, each new row
/// would modify a page of an index larger than the log itself; a number keeps that index small.
/// Rows found by it are compared in full, so that a collision costs only a comparison, and without
/// the key no one can create many colliding names deliberately.
struct EventFingerprint: Sendable {
    static let keyBytes = 16

    private let hash: SipHash

    /// - Throws: `StoreError.corrupt` if the key is not `keyBytes` long.
    init(key: Data) throws {
        guard key.count == Self.keyBytes else {
            throw StoreError.corrupt(reason: "the key of the event index has a wrong length")
        }
        hash = SipHash(secret: Array(key))
    }

    func callAsFunction(app: String, source: String, id: String) -> Int64 {
        var name: [UInt8] = []
        name.reserveCapacity(app.utf8.count + source.utf8.count + id.utf8.count + 2)
        func append(_ text: String) {
            var text = text
            // Sound: the pointer is read within the closure that lends it.
            text.withUTF8 { name.append(contentsOf: $0) }
        }
        append(app)
        name.append(0)
        append(source)
        name.append(0)
        append(id)
        return Int64(bitPattern: hash(name))
    }
}
