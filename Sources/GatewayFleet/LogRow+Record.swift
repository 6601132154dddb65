import Foundation
import GatewayPostgres
import GatewayStorage

extension LogRow {
    /// Creates a row of a record; `nil` for one that tells of a registration, which operators see
    /// among the registrations.
    init?(_ record: LogRecord, at sequence: UInt64, acceptedAt: Int64) {
        let type: LogEntryType
        var event: LogRecord.Event?
        let bytes: [UInt8]
        switch record.content {
        case .change(let name, let payload): (type, event, bytes) = (.change, name, payload)
        // Read from where all catalogs are.
        case .catalog: (type, bytes) = (.catalog, [])
        case .reload(let scope): (type, bytes) = (.reload, scope)
        case .removal: (type, bytes) = (.removal, [])
        case .registration, .registrationRemoved, .addressesLost: return nil
        }
        self.init(
            sequence: sequence, app: record.app, type: type, source: event?.source,
            eventID: event?.id, acceptedAt: acceptedAt, payload: Data(bytes))
    }
}

extension StoredBatch {
    /// Returns the rows of the records, in order.
    ///
    /// - Throws: `PostgresError.unreadableRecord`.
    func rows() throws(PostgresError) -> [LogRow] {
        var rows: [LogRow] = []
        for (index, record) in try records().enumerated() {
            let row = LogRow(
                record, at: UInt64(clamping: head.first) + UInt64(index), acceptedAt: head.at)
            if let row { rows.append(row) }
        }
        return rows
    }
}
