import Foundation
import GRDB
import GatewayCore

extension StoreTransaction {
    /// Removes what is kept of an app beside its rows of the log: catalogs, registrations, what its
    /// clients are owed by pushes, and the pushes that were tried. The rows go with the log's age.
    ///
    /// - Returns: how many clients were registered.
    package mutating func deleteApp(_ app: String) throws -> Int {
        let (clients, catalogBytes) = try writing { db in
            let catalogBytes = try Int.fetchOne(
                db.cachedStatement(sql: "SELECT sum(length(payload)) FROM catalog WHERE app = ?"),
                arguments: [app])
            try db.cachedStatement(sql: "DELETE FROM registration WHERE app = ?")
                .execute(arguments: [app])
            let clients = db.changesCount
            for table in [
                "registration_seen", "registration_attribute", "push_client", "push_attempt",
                "catalog",
            ] {
                try db.cachedStatement(sql: "DELETE FROM \(table) WHERE app = ?")
                    .execute(arguments: [app])
            }
            return (clients, catalogBytes ?? 0)
        }
        stagedUsage.add(AppUsage(clients: -clients, logBytes: -catalogBytes), to: app)
        return clients
    }
}
