import GatewayCore
import GatewayRecords
import GatewayStorage
import WidgetModel

/// The precondition of a catalog upload (RFC 9110 section 13.1).
package enum Precondition: Sendable, Equatable {
    case none
    /// `If-Match`: one of these tags, or any with `*`.
    case match([String])
    /// `If-None-Match: *`: only if there is no catalog yet.
    case absent

    func holds(_ etag: String?) -> Bool {
        switch self {
        case .none: true
        case .match(let tags): etag.map { tags.contains("*") || tags.contains($0) } ?? false
        case .absent: etag == nil
        }
    }
}

extension ChangeLog {
    /// The result of a catalog upload.
    package struct CatalogOutcome: Sendable {
        package let document: CatalogDocument
        package let isNew: Bool
        package let kinds: Int
    }

    /// Puts a catalog in force. Uploading the document in force again changes nothing.
    ///
    /// The catalog is compiled on the caller's thread, as a replacement for the one in force then.
    /// If another one is in force when it is written, it is compiled again, at most ``attemptsMax``
    /// times in all.
    package func putCatalog(
        _ catalog: Catalog, contentType: String, body: [UInt8], _ precondition: Precondition
    ) async throws -> CatalogOutcome {
        let app = catalog.app
        let (etag, kinds) = (CatalogDocument.etag(of: body, catalogs.hash), catalog.widgets.count)
        let payload = LogPayload.catalog(contentType: contentType, body: body)
        for _ in 0..<Self.attemptsMax {
            let previous = catalogs.ruleSet(of: app)
            let isInForce = catalogs.document(of: app)?.etag == etag
            let compiled = isInForce ? nil : catalogs.compile(catalog, replacing: previous)
            let outcome = try await writer.write(for: .app(app), cost: 2 * body.count + 256) {
                transaction -> CatalogOutcome? in
                let current = self.catalogs.entry(of: app, transaction)
                guard precondition.holds(current.document?.etag) else {
                    throw EngineError.preconditionFailed
                }
                if let document = current.document, document.etag == etag {
                    return CatalogOutcome(document: document, isNew: false, kinds: kinds)
                }
                guard current.ruleSet === previous, let ruleSet = compiled else { return nil }
                try self.writer.checkLog(adding: payload.count, of: app, transaction)
                let entry = try self.append(.catalog, .catalog(ruleSet), app: app, &transaction)
                try transaction.putCatalog(app: app, sequence: entry.sequence, payload: payload)
                let document = CatalogDocument(
                    sequence: entry.sequence, contentType: contentType, body: body, etag: etag)
                self.catalogs.stage(at: entry.sequence, &transaction) {
                    $0.install(ruleSet, document)
                }
                transaction.afterCommit { self.writer.publish([.entry(entry)]) }
                return CatalogOutcome(
                    document: document, isNew: current.document == nil, kinds: kinds)
            }
            if let outcome { return outcome }
        }
        throw EngineError.busy(.catalogChanges)
    }

    /// Removes an app with its catalog and clients, whose streams end: all of it or, if the disk
    /// refuses, nothing.
    ///
    /// The removal has an entry in the log, like a catalog. A catalog uploaded later is a first
    /// one, whose rules are newer than every cursor issued before: clients that present such a
    /// cursor rebuild everything. Other writes wait while the clients are removed.
    ///
    /// - Returns: The sequence at which the app ended, and the number of its clients.
    /// - Throws: ``EngineError/unknownApp`` for an app without a catalog.
    package func removeApp(_ app: String) async throws -> (sequence: UInt64, clients: Int) {
        try await writer.write(for: .app(app), cost: 4096) { transaction in
            guard self.catalogs.entry(of: app, transaction).document != nil else {
                throw EngineError.unknownApp
            }
            let clients = try transaction.deleteApp(app)
            let entry = try self.append(.removal, .removal, app: app, &transaction)
            self.catalogs.stage(at: entry.sequence, &transaction) {
                $0.remove(app: app, at: entry.sequence)
            }
            transaction.afterCommit {
                self.registry.removeAll(of: app)
                self.writer.publish([.entry(entry)])
            }
            return (entry.sequence, clients)
        }
    }
}
