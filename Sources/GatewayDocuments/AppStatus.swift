import WidgetModel

/// The status of every app that has a catalog.
package struct AppList: Codable, Sendable {
    package var apps: [AppStatus] = []

    package init() {}
}

package struct AppStatus: Codable, Sendable {
    package var app = ""
    /// The sequence of the catalog in force.
    package var catalog: UInt64 = 0
    package var warnings: [Fault] = []
    package var clients = 0
    package var clientsLookedAt = 0
    package var kinds: [Kind] = []

    package init() {}

    /// The status of a kind. Staleness is that of sampled clients.
    package struct Kind: Codable, Sendable {
        package var kind = ""
        package var configuration = ""
        package var widgets = 0
        package var looked = 0
        package var stale = 0
        package var staleSince: String?
        /// The number of clients whose widgets of this kind no change can make stale, because they
        /// lack attributes that its rules bind to.
        package var clientsLacking: Int?
        /// The attributes that rules of the kind bind to, if there are such clients.
        package var lacking: [String]?
        package var displayName: String?
        package var recent: Quantiles?
        package var hour: Quantiles?
        /// The reloads since the start that were not needed, as far as the gateway knows.
        package var needless: UInt64?

        package init() {}
    }
}

/// The answer to the removal of an app.
package struct RemovedApp: Codable, Sendable {
    package var app = ""
    /// The number of clients that were removed with it.
    package var clients = 0
    package var sequence: UInt64 = 0

    package init() {}
}
