import CatalogModel
import CoreMetrics
import GatewayCore
import GatewayOperations
import WidgetModel

/// Decides changes and compiles catalogs, and appends them to the log, as well as reloads: returns
/// when they are durable and handed to every event loop.
package final class ChangeLog: Sendable {
    let log: EngineLog
    let catalogs: AppCatalogs
    private let documents: DocumentWork
    private let metrics: GatewayMetrics
    private let tracing: GatewayTracing?
    /// The recent entries of the log.
    package let accepted: AcceptedChanges

    init(
        log: EngineLog, catalogs: AppCatalogs, accepted: AcceptedChanges,
        documents: DocumentWork, metrics: GatewayMetrics, tracing: GatewayTracing?
    ) {
        self.log = log
        self.catalogs = catalogs
        self.accepted = accepted
        self.documents = documents
        self.metrics = metrics
        self.tracing = tracing
    }

    /// The maximum number of attempts at deciding or compiling by a catalog that others replace
    /// concurrently.
    static let attemptsMax = 8

    /// Returns the catalog of an app in force; `nil` if it has none.
    ///
    /// - Throws: ``EngineError/cluster(_:)`` if another gateway may have put one that this one does
    ///   not know of yet.
    package func catalog(of app: String) async throws -> CatalogDocument? {
        if let document = catalogs.document(of: app) { return document }
        _ = try await log.barrier()
        return catalogs.document(of: app)
    }

    /// Appends a post, whole or not at all.
    ///
    /// The changes are decided on the caller's thread, by the catalog in force then. If another one
    /// is in force when the post is written, they are decided again, at most ``attemptsMax`` times
    /// in all.
    package func post(_ events: [CloudEvent], app: String) async throws -> PostOutcome {
        let payloads = events.map { LogPayload.change($0.change, time: $0.time) }
        let trace = tracing.flatMap { PostTrace(events, app, $0.tracer) }
        let repetitions = try DecidedPost.repetitions(in: events)
        do {
            _ = try await catalog(of: app)
            for _ in 0..<Self.attemptsMax {
                let rules = catalogs.ruleSet(of: app)
                let isLong = DecidedPost.isLong(events, by: rules)
                let decided = try await documents.run(isLong ? .large : .bytes(0), for: app) {
                    try await DecidedPost(
                        events, payloads, repeating: repetitions, by: rules, catalogs.limits)
                }
                guard let outcome = try await log.append(decided, to: app, trace: trace) else {
                    continue
                }
                trace?.end()
                metrics.changesAccepted.increment(by: outcome.accepted)
                metrics.changesDuplicate.increment(by: outcome.duplicates)
                metrics.changesUnmatched.increment(by: outcome.unmatched)
                metrics.changesBroad.increment(by: outcome.broad)
                return outcome
            }
            throw EngineError.busy(.catalogChanges)
        } catch {
            trace?.end(error)
            throw error
        }
    }

    /// Appends an operator's reload; returns its sequence.
    ///
    /// - Throws: ``EngineError/unknownApp`` and ``EngineError/unknownClient``;
    ///   ``EngineError/invalid(_:)`` for a kind that is not declared.
    package func reload(_ scope: ReloadScope, app: String) async throws -> UInt64 {
        let trace = tracing.flatMap { ReloadTrace(app, scope, $0.tracer) }
        _ = try await catalog(of: app)
        return try await log.append(scope, to: app, trace: trace)
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
