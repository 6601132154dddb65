import GRDB

extension SQLiteStore {
    /// Voids every epoch older than the one numbered `ordinal`: a cursor has proved that the log
    /// lost a tail, so theirs say nothing any more. It is on disk when this returns; it blocks.
    package func voidEpochs(before ordinal: Int64) throws {
        try StoreError.translating {
            try database.write { db in
                try db.execute(
                    sql: "UPDATE epoch SET voided = 1 WHERE ordinal < ?", arguments: [ordinal])
            }
        }
    }
}
