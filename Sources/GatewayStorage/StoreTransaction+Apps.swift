import Foundation
import GRDB
import GatewayCore

extension StoreTransaction {
    /// Removes everything of an app except its rows of the log: catalogs, registrations, push
    /// states of its clients, and push attempts. The rows are removed when they are old enough.
    ///
    /// - Returns: The number of registered clients.
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
        record(.deleteApp(app))
        return clients
    }
}
