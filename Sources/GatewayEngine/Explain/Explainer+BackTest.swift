import CatalogModel
import GatewayCore
import GatewayDocuments
import GatewayOperations
import GatewayStorage
import WidgetModel

/// Back-tests a proposed catalog against recent changes.
extension Explainer {
    /// The number of changes decided before the thread is yielded.
    private static let changesPerTurn = 16
    /// The number of rows read from the log at once.
    private static let rowsPerRead = 2_000

    /// Compares the effects of an app's changes since a moment under the catalog in force and under
    /// another catalog.
    ///
    /// Reads and decides these changes twice, and then visits every registered client as the
    /// explanation of a change does. Only one comparison, or explanation of changes, runs at a time.
    ///
    /// - Parameters:
    ///   - since: In milliseconds since 1970.
    ///   - isWanted: Whether the caller still waits for the answer.
    /// - Throws: ``EngineError/unknownApp`` without a catalog, ``EngineError/busy(_:)`` if too many
    ///   wait, `StoreError`; `CancellationError` if the answer is no longer wanted.
    package func difference(
        to catalog: Catalog, app: String, since: Int64, while isWanted: () -> Bool
    ) async throws -> CatalogDifference {
        let (catalogs, records) = (engine.catalogs, engine.store)
        guard let present = catalogs.ruleSet(of: app) else { throw EngineError.unknownApp }
        try await turns.begin(app: app)
        defer { turns.end() }
        let head = records.head
        let proposed = catalogs.compile(catalog, sequence: head + 1)
        var sides = [present, proposed].map {
            BackTest(
                $0, limits: catalogs.limits, terms: pushTerms(), hash: catalogs.hashes.stored)
        }
        let first = max(
            try await records.lastSequence(acceptedBefore: since), catalogs.removal(of: app))
        var (last, changes, isCut) = (first, 0, false)
        reading: while last < head {
            guard isWanted() else { throw CancellationError() }
            let rows = try await records.log(after: last, through: head, limit: Self.rowsPerRead)
            // The log's beginning was truncated in the meantime.
            guard let end = rows.last else { break }
            for row in rows where row.app == app && row.type == .change {
                let change = try LogPayload.readChange(row.payload, limits: .none).change
                for index in sides.indices {
                    sides[index].replay(change, at: row.sequence, time: row.acceptedAt)
                }
                changes += 1
                if changes.isMultiple(of: Self.changesPerTurn) {
                    guard isWanted() else { throw CancellationError() }
                    await Task.yield()
                }
                if sides.contains(where: \.isFull) {
                    (last, isCut) = (row.sequence, true)
                    break reading
                }
            }
            last = end.sequence
            await Task.yield()
        }
        for index in sides.indices { sides[index].finish() }
        for part in 0..<Registry.partCount {
            guard isWanted() else { throw CancellationError() }
            for client in engine.registry.clients(of: app, part: part) {
                for index in sides.indices { sides[index].count(client.record) }
            }
            await Task.yield()
        }
        var document = CatalogDifference()
        document.since = timestamp(since)
        document.after = first
        document.through = last
        document.changes = changes
        document.cut = isCut
        document.warnings = catalog.warnings
        document.now = sides[0].document
        document.proposed = sides[1].document
        document.kinds = Self.kinds(sides[0], sides[1])
        return document
    }

    private static func kinds(
        _ now: BackTest, _ proposed: BackTest
    ) -> [CatalogDifference.Kind] {
        let subjects = Set(now.figures.keys).union(proposed.figures.keys).sorted {
            ($0.kind, $0.target.rawValue) < ($1.kind, $1.target.rawValue)
        }
        return subjects.map { subject in
            var kind = CatalogDifference.Kind()
            kind.kind = subject.kind
            kind.target = subject.target.name
            kind.now = now.figures[subject]?.document
            kind.proposed = proposed.figures[subject]?.document
            return kind
        }
    }
}

extension BackTest {
    fileprivate var document: CatalogDifference.Side {
        var document = CatalogDifference.Side()
        (document.unmatched, document.broad, document.refused) = (unmatched, broad, refused)
        return document
    }
}

extension BackTest.Stats {
    fileprivate var document: CatalogDifference.Figures {
        var document = CatalogDifference.Figures()
        document.holders = holders
        document.changes = changes
        document.reloads = reloads
        document.pushes = pushes
        document.withheld = withheld
        return document
    }
}
