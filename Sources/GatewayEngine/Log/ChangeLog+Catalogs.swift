import CatalogModel
import GatewayOperations
import WidgetModel

/// The precondition of a catalog upload (RFC 9110 section 13.1).
package enum Precondition: Sendable, Equatable {
    case none
    /// `If-Match`: one of these tags, or any with `*`.
    case match([String])
    /// `If-None-Match: *`: only if there is no catalog yet.
    case absent

    package func holds(_ etag: String?) -> Bool {
        switch self {
        case .none: true
        case .match(let tags): etag.map { tags.contains("*") || tags.contains($0) } ?? false
        case .absent: etag == nil
        }
    }
}

extension ChangeLog {
    /// Puts a catalog in force. Uploading the document in force again changes nothing.
    ///
    /// The catalog is compiled on the caller's thread, as a replacement for the one in force then.
    /// If another one is in force when it is written, it is compiled again, at most ``attemptsMax``
    /// times in all.
    package func putCatalog(
        _ catalog: Catalog, contentType: String, body: [UInt8], _ precondition: Precondition
    ) async throws -> CatalogOutcome {
        let app = catalog.app
        let etag = CatalogDocument.etag(of: body, catalogs.hashes.documents)
        let payload = LogPayload.catalog(contentType: contentType, body: body)
        for _ in 0..<Self.attemptsMax {
            let previous = catalogs.ruleSet(of: app)
            let isInForce = catalogs.document(of: app)?.etag == etag
            let compiled = isInForce ? nil : catalogs.compile(catalog, replacing: previous)
            let outcome = try await log.put(
                CatalogUpload(
                    app: app, contentType: contentType, body: body, etag: etag, payload: payload,
                    precondition: precondition, compiled: compiled, previous: previous))
            if let outcome { return outcome }
        }
        throw EngineError.busy(.catalogChanges)
    }
}
