import Foundation
import GatewayCore
import Testing
import WidgetModel

@testable import GatewayOperations

/// The entity tags of catalogs.
@Suite struct CatalogDocumentTests {
    private let hash = SipHash(1, 2)

    @Test func `other documents have another tag, with another secret too`() {
        let tag = CatalogDocument.etag(of: Array("a".utf8), hash)
        #expect(tag == CatalogDocument.etag(of: Array("a".utf8), hash))
        #expect(tag != CatalogDocument.etag(of: Array("b".utf8), hash))
        #expect(tag != CatalogDocument.etag(of: Array("a".utf8), SipHash(1, 3)))
        #expect(tag.hasPrefix("\"") && tag.hasSuffix("\""))
    }

    @Test func `each use has a key of its own, and old cursors stay valid`() throws {
        let secret = Data((0..<32).map { UInt8($0) })
        let hashes = try StoreHashes(secret: secret)
        let cursor = CursorSeal(SipHash(secret: Array(secret)))
            .cursor(EpochID(ordinal: 3, nonce: 4), 5)
        #expect(CursorSeal(hashes.stored).isGenuine(cursor))
        let uses = [hashes.stored, hashes.keys, hashes.documents]
        #expect(Set(uses.map { $0("a") }).count == uses.count)
        #expect(try StoreHashes(secret: secret).keys("a") == hashes.keys("a"))
        #expect(try StoreHashes(secret: Data(secret.reversed())).keys("a") != hashes.keys("a"))
    }

    /// An uploader chooses the document and reads its tag, so the tag must not seal a cursor.
    @Test func `a tag is not the hash that seals a cursor`() {
        let epoch = EpochID(ordinal: 3, nonce: 4)
        let sealed = CursorSeal(hash).cursor(epoch, 5).tag
        let words: [UInt64] = [2, UInt64(epoch.ordinal) << 32 | UInt64(epoch.nonce), 5]
        let document = words.flatMap { word in (0..<8).map { UInt8(word >> (8 * $0) & 0xFF) } }
        #expect(hash(document) == sealed, "what the tag would be without its prefix")
        #expect(CatalogDocument.etag(of: document, hash) != "\"\(String(sealed, radix: 16))\"")
    }
}
