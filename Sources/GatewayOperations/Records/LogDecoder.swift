import GatewayCore
import GatewayDocuments
import GatewayStorage
import WidgetModel

/// Reads rows of the log back, in order: each is the entry that it was when it was written.
package struct LogDecoder: Sendable {
    /// The catalogs in force.
    package private(set) var catalogs: CatalogState
    private let hashes: StoreHashes
    /// The time of the last change as a text, which the changes of a post share.
    private var acceptedTime: (at: Int64, text: String) = (0, timestamp(0))

    package init(catalogs: CatalogState, hashes: StoreHashes) {
        self.catalogs = catalogs
        self.hashes = hashes
    }

    /// Puts a catalog in force that lies before the rows.
    package mutating func install(_ row: CatalogRow) throws -> RuleSet {
        let (catalog, document) = try UnreadableRow.naming("the catalog of the app \(row.app)") {
            try CatalogDocument.read(row.payload, of: row.app, at: row.sequence, hashes)
        }
        return catalogs.install(catalog, document, hashes)
    }

    /// Returns the entry of the next row, by the catalogs before it. Throws ``UnreadableRow``.
    ///
    /// - Parameter catalog: The catalog that the row announces; `nil` if a later row removed it
    ///   with its app: then the entry is a removal.
    package mutating func entry(of row: LogRow, catalog: CatalogRow?) throws -> LogEntry {
        let body: LogEntry.Body
        var urgency = Urgency.normal
        switch row.type {
        case .change:
            let (change, cause) = try UnreadableRow.naming("the change at \(row.sequence)") {
                try LogPayload.readChange(row.payload, limits: .none)
            }
            urgency = change.urgency
            body = catalogs.decider.replay(
                change, app: row.app,
                cause: cause ?? ChangeCause(time: time(of: row)))
        case .catalog:
            body = try catalog.map { .catalog(try install($0)) } ?? .removal
        case .removal:
            catalogs.remove(app: row.app, at: row.sequence)
            body = .removal
        case .reload:
            body = .reload(
                try UnreadableRow.naming("the reload at \(row.sequence)") {
                    try LogPayload.readReload(row.payload)
                })
        case .start:
            let start = try UnreadableRow.naming("the start at \(row.sequence)") {
                try LogPayload.readStart(row.payload)
            }
            urgency = start.urgency
            body = .start(start)
        }
        return LogEntry(
            sequence: row.sequence, app: row.app, acceptedAt: row.acceptedAt, urgency: urgency,
            body: body)
    }

    private mutating func time(of row: LogRow) -> String {
        if row.acceptedAt != acceptedTime.at {
            acceptedTime = (row.acceptedAt, timestamp(row.acceptedAt))
        }
        return acceptedTime.text
    }
}
