import GatewayCore
import GatewayStorage

/// The state of a node of a cluster.
package struct ClusterState: Sendable, Equatable {
    /// The reason why the node does not follow or write the log; `nil` if it does both.
    package let objection: String?

    package init(objection: String?) { self.objection = objection }
}

/// The log and the registrations as routes, pages and explanations read them.
///
/// Readings see what is durable when they begin. When the store does not answer they throw a
/// `StoreError` or, in a cluster, ``EngineError/cluster(_:)``.
package protocol EngineRecords: Sendable {
    /// The highest sequence that this gateway has, and that is durable.
    var head: UInt64 { get }

    /// The highest sequence that retention has removed.
    var floor: UInt64 { get }

    /// The statistics of the store.
    var figures: StoreStats { get }

    /// The state of this gateway as a node of a cluster; `nil` if no other gateway shares the log.
    var cluster: ClusterState? { get }

    /// The registrations and log bytes of each app, as far as this gateway counts them.
    var usage: UsageTable { get }

    /// Returns a row of the log; `nil` if it does not, or no longer, exist.
    func logRow(_ sequence: UInt64) async throws -> LogRow?

    /// Returns changes of an app, the latest first.
    ///
    /// - Parameters:
    ///   - before: The upper limit of their sequences, exclusive.
    ///   - after: The lower limit of their sequences, exclusive.
    ///   - limit: The maximum number of rows; fewer if they would be too large together.
    /// - Returns: The changes, and the sequence before which to continue; `nil` at the beginning of
    ///   the log.
    func changes(
        app: String, before: UInt64, after: UInt64, limit: Int
    ) async throws -> (rows: [LogRow], next: UInt64?)

    /// Returns rows of the log in order, after a sequence and up to another; at most `limit`, and
    /// fewer if they would be too large together.
    func log(after sequence: UInt64, through last: UInt64, limit: Int) async throws -> [LogRow]

    /// Returns the last stored sequence that was accepted before a time, in milliseconds since 1970.
    func lastSequence(acceptedBefore moment: Int64) async throws -> UInt64

    /// Returns the catalog of an app that was in force for the log row at `sequence`; `nil` if it
    /// is not stored.
    func catalog(app: String, at sequence: UInt64) async throws -> CatalogRow?

    /// Returns one page of the registrations of an app, ordered by client id.
    ///
    /// - Parameters:
    ///   - attribute: An attribute value to filter by; `nil` for all registrations.
    ///   - prefix: The beginning of the ids of wanted clients.
    ///   - after: The last client id of the previous page; `nil` for the first page.
    ///   - limit: The maximum number of rows; the page is shorter if it would be too large.
    func registrations(
        app: String, attribute: (name: String, value: String)?, prefix: String, after: String?,
        limit: Int
    ) async throws -> RegistrationPage

    /// Returns attempts at pushes of an app, the newest first; at most `limit`.
    func pushAttempts(_ query: PushAttemptQuery, limit: Int) async throws -> [PushAttemptRow]

    /// Returns the provider tokens of all issuers.
    func providerTokens() async throws -> [ProviderTokenRow]
}

extension SQLiteStore: EngineRecords {
    package var cluster: ClusterState? { nil }

    package func changes(
        app: String, before: UInt64, after: UInt64, limit: Int
    ) async throws -> (rows: [LogRow], next: UInt64?) {
        try await changes(app: app, before: before, after: after, limit: limit, scanMax: 50_000)
    }
}
