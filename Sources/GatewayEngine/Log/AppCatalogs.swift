import CatalogModel
import GatewayCore
import GatewayOperations
import Synchronization
import WidgetModel

/// The catalogs in force, compiled and as they were uploaded.
///
/// Read by any thread; changed by jobs, which run one after another on the writer's thread.
package final class AppCatalogs: Sendable {
    struct Entry: Sendable {
        let ruleSet: RuleSet?
        let document: CatalogDocument?
        let removal: UInt64
    }

    let hashes: StoreHashes
    package let limits: Limits
    private let state: Mutex<Staged<CatalogState>>

    package init(_ state: CatalogState, hashes: StoreHashes, limits: Limits) {
        self.hashes = hashes
        self.limits = limits
        self.state = Mutex(Staged(state))
    }

    // MARK: Any thread

    var current: CatalogState { state.withLock { $0.value } }

    /// Returns the catalog of an app as it was uploaded.
    package func document(of app: String) -> CatalogDocument? {
        state.withLock { $0.value.documents[app] }
    }

    /// Returns the sequence at which an app was last removed; 0 if the log has no removal of it.
    package func removal(of app: String) -> UInt64 {
        state.withLock { $0.value.removals[app] ?? 0 }
    }

    package func ruleSet(of app: String) -> RuleSet? {
        state.withLock { $0.value.decider.ruleSets[app] }
    }

    /// The rules in force, ordered by app.
    package var ruleSets: [RuleSet] {
        state.withLock { state in
            state.value.documents.keys.sorted().compactMap { state.value.decider.ruleSets[$0] }
        }
    }

    func compile(
        _ catalog: Catalog, sequence: UInt64 = 0, replacing previous: RuleSet? = nil
    ) -> RuleSet {
        RuleSet(catalog, sequence: sequence, replacing: previous, hash: hashes.keys)
    }

    // MARK: The thread that applies the log

    /// Puts a catalog in force, which may be staged already.
    package func install(_ ruleSet: RuleSet, _ document: CatalogDocument) {
        state.withLock { state in
            state.change(at: document.sequence) { $0.install(ruleSet, document) }
            state.commit(document.sequence)
        }
    }

    package func remove(app: String, at sequence: UInt64) {
        state.withLock { state in
            state.change(at: sequence) { $0.remove(app: app, at: sequence) }
            state.commit(sequence)
        }
    }

    // MARK: The writer's thread

    /// Undoes what was staged by a commit that failed.
    ///
    /// - Parameter next: The sequence that the next entry gets.
    func rollBack(before next: UInt64) { state.withLock { $0.rollBack(before: next) } }

    /// Returns the catalog of an app as the previous jobs of this commit left it.
    ///
    /// - Parameter next: The sequence that the next entry gets.
    func entry(of app: String, before next: UInt64) -> Entry {
        state.withLock { state in
            state.rollBack(before: next)
            return Entry(
                ruleSet: state.value.decider.ruleSets[app],
                document: state.value.documents[app],
                removal: state.value.removals[app] ?? 0)
        }
    }

    /// Changes the catalogs for subsequent jobs, until the entry at a sequence is applied, or its
    /// commit turns out to have failed.
    func stage(at sequence: UInt64, _ change: @Sendable (inout CatalogState) -> Void) {
        state.withLock { $0.change(at: sequence, change) }
    }
}
