import CatalogModel
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

    package init(decider: Decider) {
        self.decider = decider
    }

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
