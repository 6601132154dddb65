import CatalogModel
import GatewayCore
import GatewayOperations
import GatewayStorage
import WidgetModel

/// Logged changes, decided again by the catalog that decided them: the same input gives the same
/// decision, so decisions need not be stored.
extension Explainer {
    package struct Logged: Sendable {
        package let row: LogRow
        package let change: Change
        package let ruleSet: RuleSet
        /// The sequence of the catalog that decides it here, and whether that catalog was in force
        /// then.
        package let catalog: UInt64
        package let isCatalogOfThen: Bool
    }

    /// The change at `sequence` of an app; `nil` if the log has none of this app there.
    package func logged(_ sequence: UInt64, app: String) async throws -> Logged? {
        guard let row = try await engine.store.logRow(sequence), row.app == app,
            row.type == .change, sequence > engine.catalogs.removal(of: app)
        else { return nil }
        return try await logged(row)
    }

    /// Decodes and decides a log row that is a change.
    package func logged(_ row: LogRow) async throws -> Logged {
        let change = try LogPayload.readChange(row.payload, limits: .none).change
        let (ruleSet, isOfThen) = try await ruleSet(app: row.app, at: row.sequence)
        return Logged(
            row: row, change: change, ruleSet: ruleSet, catalog: ruleSet.sequence,
            isCatalogOfThen: isOfThen)
    }

    /// The rules that were in force for the log row at `sequence`; if unknown, those in force now.
    private func ruleSet(
        app: String, at sequence: UInt64
    ) async throws -> (RuleSet, isOfThen: Bool) {
        guard let present = engine.catalogs.ruleSet(of: app) else { throw EngineError.unknownApp }
        guard sequence < present.sequence else { return (present, true) }
        guard let row = try await engine.store.catalog(app: app, at: sequence) else {
            return (present, false)
        }
        if let known = kept(app, row.sequence) { return (known, true) }
        let (contentType, body) = try LogPayload.readCatalog(row.payload)
        let catalog = try Catalog(contentType: contentType, body: body, app: app, limits: .none)
        let ruleSet = engine.catalogs.compile(catalog, sequence: row.sequence)
        keep(ruleSet)
        return (ruleSet, true)
    }
}
