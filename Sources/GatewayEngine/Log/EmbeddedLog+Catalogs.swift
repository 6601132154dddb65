import GatewayCore
import GatewayRecords
import GatewayStorage

extension EmbeddedLog {
    package func put(_ upload: CatalogUpload) async throws -> CatalogOutcome? {
        let app = upload.app
        return try await writer.write(for: .app(app), cost: 2 * upload.body.count + 256) {
            transaction -> CatalogOutcome? in
            let current = self.catalogs.entry(of: app, transaction)
            guard upload.precondition.holds(current.document?.etag) else {
                throw EngineError.preconditionFailed
            }
            if let document = current.document, document.etag == upload.etag {
                return CatalogOutcome(document: document, isNew: false)
            }
            guard current.ruleSet === upload.previous, let ruleSet = upload.compiled else {
                return nil
            }
            try self.writer.checkLog(adding: upload.payload.count, of: app, transaction)
            let entry = try self.append(.catalog, .catalog(ruleSet), app: app, &transaction)
            try transaction.putCatalog(
                app: app, sequence: entry.sequence, payload: upload.payload)
            let document = CatalogDocument(
                sequence: entry.sequence, contentType: upload.contentType, body: upload.body,
                etag: upload.etag)
            self.catalogs.stage(at: entry.sequence, &transaction) {
                $0.install(ruleSet, document)
            }
            transaction.afterCommit { self.publisher.publish([.entry(entry)]) }
            return CatalogOutcome(document: document, isNew: current.document == nil)
        }
    }

    /// Removes an app with its catalog and clients. Other writes wait while the clients are removed.
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
                self.publisher.publish([.entry(entry)])
            }
            return (entry.sequence, clients)
        }
    }
}
