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

    /// Attempts at compiling a catalog that others replace at the same time.
    static let catalogAttemptsMax = 8

    /// Puts a catalog in force. The document in force already changes nothing.
    ///
    /// It is compiled on the caller's thread, to replace the one in force then. Where that is another
    /// one when its turn comes, it is compiled again, at most ``catalogAttemptsMax`` times in all.
    func putCatalog(
        _ catalog: Catalog, contentType: String, body: [UInt8], _ precondition: Precondition
    ) async throws -> CatalogOutcome {
        let etag = etag(body)
        let payload = LogPayload.catalog(contentType: contentType, body: body)
        for _ in 0..<Self.catalogAttemptsMax {
            let previous = ruleSet(of: catalog.app)
            let isInForce = catalogDocument(catalog.app)?.etag == etag
            let compiled =
                isInForce
                ? nil : RuleSet(catalog, sequence: 0, replacing: previous, hash: hash)
            let document = (contentType: contentType, body: body, etag: etag, payload: payload)
            let outcome = try await store(
                document, catalog, compiled, replacing: previous, precondition)
            if let outcome { return outcome }
        }
        throw Problem.unavailable("The app's catalog keeps changing; try again.")
    }

    /// Stores a catalog and puts it in force.
    ///
    /// - Parameter ruleSet: The catalog, compiled to replace `previous`.
    /// - Returns: `nil` when another catalog than `previous` is in force.
    private func store(
        _ put: (contentType: String, body: [UInt8], etag: String, payload: Data),
        _ catalog: Catalog, _ ruleSet: RuleSet?, replacing previous: RuleSet?,
        _ precondition: Precondition
    ) async throws -> CatalogOutcome? {
        let app = catalog.app
        let (contentType, body, etag, payload) = put
        return try await write(for: .app(app), cost: 2 * body.count + 256) { transaction in
            let (current, inForce) = self.withState(transaction) {
                ($0.documents[app], $0.decider.ruleSets[app])
            }
            guard precondition.holds(current?.etag) else { throw Problem.preconditionFailed }
            if let current, current.etag == etag {
                return CatalogOutcome(
                    document: current, isNew: false, kinds: catalog.widgets.count)
            }
            guard inForce === previous, let ruleSet else { return nil }
            try self.checkLog(adding: payload.count, of: app, transaction)
            let acceptedAt = self.desk.wallMilliseconds()
            let sequence = try transaction.append(
                app: app, type: .catalog, source: nil, eventID: nil, acceptedAt: acceptedAt,
                payload: Data())
            try transaction.putCatalog(app: app, sequence: sequence, payload: payload)
            let document = CatalogDocument(
                sequence: sequence, contentType: contentType, body: body, etag: etag)
            self.stage(ruleSet, document, at: sequence)
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
        _ ruleSet: RuleSet, _ document: CatalogDocument, at sequence: UInt64
    ) {
        state.withLock { state in
            state.stage(at: sequence)
            state.documents[ruleSet.catalog.app] = document
            state.decider.install(ruleSet, at: sequence)
        }
    }
}
