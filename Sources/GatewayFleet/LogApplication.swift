import Foundation
import GatewayCore
import GatewayDocuments
import GatewayEngine
import GatewayPostgres
import GatewayRecords
import WidgetModel

/// Makes the entries that a node applies from the batches of the fleet's log: decides changes by the
/// catalogs that lie before them. All nodes get the same from the same batches.
package struct LogApplication: Sendable {
    /// An effect of a record on what the node holds in memory.
    package enum Effect: Sendable {
        /// An entry of the log; every record has one, so that positions have no gaps.
        case entry(LogEntry)
        /// A catalog came into force with its entry.
        case catalog(RuleSet, CatalogDocument)
        /// A change was decided by these rules.
        case decided(RuleSet.Decision, by: RuleSet, at: UInt64)
        /// A registration that the node holds, as of this record or later.
        case registered(ClientRecord, ClientKey)
        /// A client is not registered any more.
        case removed(ClientKey)
        /// An app was removed with its clients.
        case removedApp(String, at: UInt64)
    }

    /// A record that this program cannot apply. Nothing is skipped: the node stops.
    package struct Unreadable: Error, CustomStringConvertible {
        package let sequence: UInt64
        /// The reason, for operators.
        package let reason: String

        package var description: String { "the record \(sequence) of the log: \(reason)" }
    }

    private let hashes: StoreHashes
    private var decider: Decider
    /// The rules in force, by app.
    var ruleSets: [String: RuleSet] { decider.ruleSets }
    /// The position up to which batches were applied.
    package private(set) var position: UInt64

    /// Creates the state as of a position.
    ///
    /// - Parameter decider: The rules in force there.
    package init(hashes: StoreHashes, decider: Decider, position: UInt64) {
        self.hashes = hashes
        self.decider = decider
        self.position = position
    }

    /// Returns the clients whose registrations a batch changes.
    package static func registered(in batch: LogBatch) -> [RegistrationKey] {
        var keys: Set<RegistrationKey> = []
        for record in batch.records {
            switch record.content {
            case .registration(let state):
                keys.insert(
                    RegistrationKey(part: state.part, app: record.app, client: state.client))
            case .addressesLost(let part, let client):
                keys.insert(RegistrationKey(part: part, app: record.app, client: client))
            case .change, .catalog, .reload, .removal, .registrationRemoved: break
            }
        }
        return Array(keys)
    }

    /// Applies the next batch.
    ///
    /// - Parameter rows: The registrations that the node holds, of those in the batch, as of its
    ///   position or later, in stored form; `nil` for a row that cannot be read.
    /// - Throws: ``Unreadable``.
    package mutating func apply(
        _ batch: LogBatch, rows: [RegistrationKey: StoredRegistration?]
    ) throws(Unreadable) -> [Effect] {
        var effects: [Effect] = []
        effects.reserveCapacity(batch.records.count)
        for (index, record) in batch.records.enumerated() {
            let sequence = UInt64(batch.first) + UInt64(index)
            do {
                try apply(record, at: sequence, acceptedAt: batch.at, rows, &effects)
            } catch {
                throw Unreadable(sequence: sequence, reason: "\(error)")
            }
        }
        position = UInt64(batch.position.last)
        return effects
    }

    private mutating func apply(
        _ record: LogRecord, at sequence: UInt64, acceptedAt: Int64,
        _ rows: [RegistrationKey: StoredRegistration?], _ effects: inout [Effect]
    ) throws {
        let app = record.app
        func entry(_ body: LogEntry.Body, urgency: Urgency = .normal) -> Effect {
            .entry(
                LogEntry(
                    sequence: sequence, app: app, acceptedAt: acceptedAt, urgency: urgency,
                    body: body))
        }
        switch record.content {
        case .change(_, let payload):
            let (change, cause) = try LogPayload.readChange(Data(payload), limits: .none)
            let body = decider.replay(
                change, app: app, cause: cause ?? ChangeCause(time: timestamp(acceptedAt)))
            if case .change(let decision, _) = body, let rules = decider.ruleSets[app] {
                effects.append(.decided(decision, by: rules, at: sequence))
            }
            effects.append(entry(body, urgency: change.urgency))
        case .catalog(let payload):
            let (catalog, document) = try CatalogDocument.read(
                Data(payload), of: app, at: sequence, hashes)
            let rules = decider.install(catalog, at: sequence)
            effects += [.catalog(rules, document), entry(.catalog(rules))]
        case .reload(let scope):
            effects.append(entry(.reload(try LogPayload.readReload(Data(scope)))))
        case .removal:
            decider.remove(app: app)
            effects += [.removedApp(app, at: sequence), entry(.removal)]
        case .registration(let state):
            effects.append(entry(.registration))
            effects += registered(state.part, ClientKey(app: app, client: state.client), rows)
        case .registrationRemoved(_, let client, _):
            effects += [
                entry(.registration), .removed(ClientKey(app: app, client: client)),
            ]
        case .addressesLost(let part, let client):
            effects.append(entry(.registration))
            effects += registered(part, ClientKey(app: app, client: client), rows)
        }
    }

    /// Returns the effect of a registration that changed, if the node holds the client.
    private func registered(
        _ part: Int16, _ client: ClientKey, _ rows: [RegistrationKey: StoredRegistration?]
    ) -> [Effect] {
        switch rows[RegistrationKey(part: part, app: client.app, client: client.client)] {
        case .some(.some(let stored)): [.registered(stored.record(of: client.client), client)]
        // As if it were not registered: it registers again, which replaces the row.
        case .some(.none): [.removed(client)]
        case .none: []
        }
    }
}
