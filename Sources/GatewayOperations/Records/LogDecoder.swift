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

/// A row of the store that cannot be read at startup: damaged, or written by a newer version.
package struct UnreadableRow: Error, CustomStringConvertible {
    /// The row's name for operators.
    let row: String
    /// The reason why it cannot be read.
    let reason: String

    package var description: String {
        "the store is damaged: \(row) cannot be read (\(reason)); check the disk, then restore a "
            + "backup with `timelinectl restore`"
    }

    /// Returns the result of `read`; adds the row's name to an error that it throws.
    package static func naming<Value>(
        _ row: @autoclosure () -> String, _ read: () throws -> Value
    ) throws -> Value {
        do {
            return try read()
        } catch {
            throw UnreadableRow(row: row(), reason: "\(error)")
        }
    }

    /// Returns the result of `read`; adds the client whose row it reads to an error that it throws.
    package static func naming<Value>(
        _ part: String, _ key: RegistrationKey, _ read: () throws -> Value
    ) throws -> Value {
        try naming("\(part) the client \(key.client) of the app \(key.app)", read)
    }
}
