import CatalogModel
import Foundation
import GatewayCore
import WidgetModel

/// The catalogs as of one position of the log, compiled and as they were uploaded.
package struct CatalogState: Sendable {
    /// The rules in force.
    package private(set) var decider: Decider
    /// The documents in force, by app.
    package private(set) var documents: [String: CatalogDocument] = [:]
    /// The sequences at which apps were removed; a removal voids everything before it.
    package private(set) var removals: [String: UInt64] = [:]

    /// Puts a catalog in force.
    package mutating func install(_ ruleSet: RuleSet, _ document: CatalogDocument) {
        documents[ruleSet.catalog.app] = document
        decider.install(ruleSet, at: document.sequence)
    }

    /// Compiles a catalog and puts it in force.
    package mutating func install(
        _ catalog: Catalog, _ document: CatalogDocument, _ hashes: StoreHashes
    ) -> RuleSet {
        let ruleSet = RuleSet(
            catalog, sequence: document.sequence, replacing: decider.ruleSets[catalog.app],
            hash: hashes.keys)
        install(ruleSet, document)
        return ruleSet
    }

    package mutating func remove(app: String, at sequence: UInt64) {
        documents[app] = nil
        removals[app] = sequence
        decider.remove(app: app)
    }
}

/// A catalog as it was uploaded.
package struct CatalogDocument: Sendable {
    /// The sequence of the log at which it came into force.
    package let sequence: UInt64
    package let contentType: String
    package let body: [UInt8]
    /// Its entity tag, which differs whenever the document does (RFC 9110 section 8.8.3).
    package let etag: String

    package init(sequence: UInt64, contentType: String, body: [UInt8], etag: String) {
        self.sequence = sequence
        self.contentType = contentType
        self.body = body
        self.etag = etag
    }

    /// Reads a catalog in stored form. Throws for a payload that a damaged store or a newer version
    /// wrote.
    package static func read(
        _ payload: Data, of app: String, at sequence: UInt64, _ hashes: StoreHashes
    ) throws -> (catalog: Catalog, document: CatalogDocument) {
        let (contentType, body) = try LogPayload.readCatalog(payload)
        let catalog = try Catalog(contentType: contentType, body: body, app: app, limits: .none)
        let document = CatalogDocument(
            sequence: sequence, contentType: contentType, body: body,
            etag: etag(of: body, hashes.documents))
        return (catalog, document)
    }

    /// Returns the entity tag of a document.
    package static func etag(of body: [UInt8], _ hash: SipHash) -> String {
        // The hash also seals cursors and identifies keys: who chooses a document must not learn
        // the hash of theirs.
        "\"" + String(hash(Array("etag:v1:".utf8) + body), radix: 16) + "\""
    }
}
