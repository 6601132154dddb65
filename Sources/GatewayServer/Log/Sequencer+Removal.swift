import Foundation
import GatewayCore
import GatewayStorage
import Synchronization
import WidgetModel

extension Sequencer {
    /// What became of an app that was removed.
    struct Removal: Sendable {
        /// Where in the log it ended.
        let sequence: UInt64
        /// How many clients it had.
        let clients: Int
    }

    /// Removes an app with its catalog and clients, whose streams end: all of it, or, where the disk
    /// refuses, nothing.
    ///
    /// It has an entry in the log, as a catalog has. A catalog put later is a first one, whose rules
    /// are newer than every cursor given out before: whoever comes with one rebuilds everything. Other
    /// writes wait while the clients go.
    ///
    /// - Throws: 404 for an app without a catalog.
    func removeApp(_ app: String) async throws -> Removal {
        let removal = try await write(for: .app(app), cost: 4096) { transaction in
            guard self.withState(transaction, { $0.documents[app] != nil }) else {
                throw Problem.unknownApp
            }
            let acceptedAt = self.desk.wallMilliseconds()
            let clients = try transaction.deleteApp(app)
            let sequence = try transaction.append(
                app: app, type: .removal, source: nil, eventID: nil, acceptedAt: acceptedAt,
                payload: Data())
            self.state.withLock { state in
                state.stage(at: sequence)
                state.documents[app] = nil
                state.removals[app] = sequence
                state.decider.remove(app: app)
            }
            transaction.afterCommit {
                self.settle(sequence)
                self.registry.removeAll(of: app)
                self.handOver([
                    .entry(
                        LogEntry(
                            sequence: sequence, app: app, acceptedAt: acceptedAt, body: .removal))
                ])
            }
            return Removal(sequence: sequence, clients: clients)
        }
        return removal
    }
}
