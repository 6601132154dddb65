import Foundation
import GatewayCore
import GatewayStorage
import Synchronization
import WidgetModel

/// A catalog as it was put.
struct CatalogDocument: Sendable {
    /// Where in the log it came into force.
    let sequence: UInt64
    /// Its media type.
    let contentType: String
    /// The document.
    let body: [UInt8]
    /// Its entity tag: differs when the document does (RFC 9110 section 8.8.3).
    let etag: String
}

/// The condition a catalog is put under (RFC 9110 section 13.1).
enum Precondition: Sendable, Equatable {
    case none
    /// `If-Match`: one of these tags, or any with `*`.
    case match([String])
    /// `If-None-Match: *`: only when there is no catalog yet.
    case absent

    func holds(_ etag: String?) -> Bool {
        switch self {
        case .none: true
        case .match(let tags): etag.map { tags.contains("*") || tags.contains($0) } ?? false
        case .absent: etag == nil
        }
    }
}

extension Sequencer {
    /// What became of a catalog.
    struct CatalogOutcome: Sendable {
        let document: CatalogDocument
        let isNew: Bool
        let kinds: Int
    }

    func etag(_ body: [UInt8]) -> String {
        "\"" + String(hash(body), radix: 16) + "\""
    }

    /// Puts a catalog in force. The document in force already changes nothing.
    func putCatalog(
        _ catalog: Catalog, contentType: String, body: [UInt8], _ precondition: Precondition
    ) async throws -> CatalogOutcome {
        let app = catalog.app
        let etag = etag(body)
        return try await write(cost: body.count + 256) { transaction in
            let current = self.withState(transaction) { $0.documents[app] }
            guard precondition.holds(current?.etag) else { throw Problem.preconditionFailed }
            if let current, current.etag == etag {
                return CatalogOutcome(
                    document: current, isNew: false, kinds: catalog.widgets.count)
            }
            let acceptedAt = self.desk.wallMilliseconds()
            let payload = LogPayload.catalog(contentType: contentType, body: body)
            let sequence = try transaction.append(
                app: app, type: .catalog, source: nil, eventID: nil, acceptedAt: acceptedAt,
                payload: Data())
            try transaction.putCatalog(app: app, sequence: sequence, payload: payload)
            let document = CatalogDocument(
                sequence: sequence, contentType: contentType, body: body, etag: etag)
            let ruleSet = self.stage(catalog, document, at: sequence)
            transaction.afterCommit {
                self.settle(sequence)
                self.handOver([
                    .entry(
                        LogEntry(
                            sequence: sequence, app: app, acceptedAt: acceptedAt,
                            body: .catalog(ruleSet)))
                ])
            }
            return CatalogOutcome(
                document: document, isNew: current == nil, kinds: catalog.widgets.count)
        }
    }

    /// What was staged by an entry is on disk, and with it what later ones of its transaction staged.
    func settle(_ sequence: UInt64) {
        state.withLock { state in
            if let staged = state.staged, staged.sequence <= sequence { state.staged = nil }
        }
    }

    /// Puts a catalog in force for the jobs that follow, until its transaction turns out to have
    /// failed.
    private func stage(
        _ catalog: Catalog, _ document: CatalogDocument, at sequence: UInt64
    ) -> RuleSet {
        state.withLock { state in
            state.stage(at: sequence)
            state.documents[catalog.app] = document
            return state.decider.install(catalog, at: sequence)
        }
    }
}
