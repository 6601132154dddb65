import Foundation
import GatewayCore
import GatewayStorage

/// A job's access to the log in the turn of the only writer, whatever stores it.
///
/// A job sees what earlier jobs of its commit wrote. If it throws, it has written nothing. Payloads
/// are opaque here; times are in milliseconds since 1970.
package protocol LogTurn: ~Copyable {
    /// The sequence that the next entry gets.
    var nextSequence: UInt64 { get }

    /// Returns the registrations and log bytes of an app.
    func usage(of app: String) -> AppUsage

    /// Returns the entry of an event above a sequence; `nil` if the log does not contain it.
    mutating func event(
        app: String, source: String, id: String, after sequence: UInt64
    ) throws -> (sequence: UInt64, payload: Data)?

    /// Appends an entry; returns its sequence.
    mutating func append(
        app: String, type: LogEntryType, source: String?, eventID: String?, acceptedAt: Int64,
        payload: Data
    ) throws -> UInt64

    /// Stores the document of the catalog whose entry has a sequence.
    mutating func putCatalog(app: String, sequence: UInt64, payload: Data) throws

    /// Removes an app with its catalogs and clients; returns the number of these.
    mutating func deleteApp(_ app: String) throws -> Int

    /// Returns the registration of a client; `nil` if it has none.
    mutating func registration(app: String, client: String) throws -> RegistrationRow?

    /// Stores the registration of a client; returns whether it had none.
    mutating func putRegistration(
        app: String, client: String, payload: Data, attributes: [String: [String]],
        updatedAt: Int64, isSeen: Bool
    ) throws -> Bool

    /// Removes the registration of a client; returns whether it had one.
    mutating func deleteRegistration(app: String, client: String) throws -> Bool

    /// Removes registrations with an attribute, at most `limit`; returns their keys.
    mutating func deleteRegistrations(
        app: String, attribute: (name: String, value: String), limit: Int
    ) throws -> [RegistrationKey]

    /// Removes registrations of clients unseen since a time, at most `limit`; returns their keys.
    mutating func deleteRegistrations(unseenSince: Int64, limit: Int) throws -> [RegistrationKey]

    /// Opens an epoch at the end of the log; see
    /// ``StoreTransaction/openEpoch(id:atLeast:at:now:voidsOlder:kept:)``.
    mutating func openEpoch(
        id: UInt64, atLeast ordinal: Int64, at sequence: UInt64?, now: Int64, voidsOlder: Bool,
        kept: Int
    ) throws -> EpochRow

    /// Calls a closure once everything of the commit is durable, in the order of the jobs, before a
    /// caller receives a result; never if the job or the commit fails.
    mutating func afterCommit(_ effect: @escaping @Sendable () -> Void)

    /// Calls a closure once after those of ``afterCommit(_:)`` of all jobs of the commit; of several,
    /// the last one set.
    mutating func afterEffects(_ body: @escaping @Sendable () -> Void)
}

extension StoreTransaction: LogTurn {}
