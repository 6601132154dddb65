import Foundation
import GatewayFleet
import GatewayPostgres
import GatewayRecords
import GatewaySigning
import GatewayStorage
import WidgetModel

extension ClusterAdministration {
    package struct Move: Sendable, Equatable {
        /// The positions and the numbers of rows.
        package let outcome: DirectoryMove.Outcome
        package let log: String
    }

    /// Moves the data directory of a stopped gateway to the empty log of the cluster; repeatable.
    ///
    /// - Parameters:
    ///   - timing: The timing of the keys that sign notifications.
    ///   - keyFile: The path of the cluster's key.
    ///   - mark: Called with the log's id when no gateway may serve from the directory any more.
    ///   - report: Called after each portion.
    /// - Throws: `Faults` at `from`, `key` or the option of the database; an error of `mark`.
    package func move(
        from directory: String, timing: KeyRing.Timing, keyFile: String,
        mark: (_ log: String) throws -> Void, report: (DirectoryMove.Progress) -> Void
    ) throws -> Move {
        try requireVersion()
        try requireOwner()
        let key: FleetKey
        do {
            key = try FleetKey(contentsOf: keyFile)
        } catch {
            throw Faults("key", "\(error)")
        }
        return try Self.naming(option) {
            do {
                let outcome = try DirectoryMove(directory, timing: timing, key: key).run(
                    on: connection, now: Int64(Date().timeIntervalSince1970),
                    mark: { try mark(try log()) }, report: report)
                return Move(outcome: outcome, log: try log())
            } catch let failure as DirectoryMove.Failure {
                throw Faults(failure.option ?? option, "\(failure)")
            } catch StoreError.alreadyInUse {
                throw Faults("from", "a gateway runs on \(directory); stop it first")
            } catch let error
                where error is StoreError || error is UnreadableRow
                || error is SigningError
            {
                throw Faults("from", "\(error)")
            }
        }
    }

    private func log() throws(PostgresError) -> String {
        try connection.rows("SELECT log_id::text FROM tg.log_identity").first?.text(0) ?? ""
    }
}

extension ClusterAdministration.Move {
    /// The parts of a data directory that no version moves yet.
    private static let leftOut = ["push state", "webhook keys"]

    package var json: JSONValue {
        var object: JSONObject = [
            "log": .string(log), "floor": .integer(Int64(clamping: outcome.floor)),
            "head": .integer(Int64(clamping: outcome.head)),
            "isNew": .bool(outcome.counts != nil),
            "leftOut": .array(Self.leftOut.map { .string($0) }),
        ]
        if let counts = outcome.counts {
            object["registrations"] = .integer(counts.registrations)
            object["catalogs"] = .integer(counts.catalogs)
            object["epochs"] = .integer(counts.epochs)
            object["secrets"] = .integer(counts.secrets)
        }
        return .object(object)
    }

    /// The result for people.
    package var lines: [String] {
        guard let counts = outcome.counts else {
            return ["log: \(log), everything was moved before, nothing to do"]
        }
        return [
            "log: \(log), \(outcome.head - outcome.floor) entries through \(outcome.head)",
            "registrations: \(counts.registrations)",
            "catalogs and removed apps: \(counts.catalogs)", "epochs: \(counts.epochs)",
            "secrets: \(counts.secrets)",
            "not moved: \(Self.leftOut.joined(separator: ", "))",
        ]
    }
}

extension DirectoryMove.Failure {
    /// The option that it concerns; `nil` for the database.
    fileprivate var option: String? {
        switch self {
        case .olderStore: "from"
        case .otherKey: "key"
        case .incomplete: nil
        }
    }
}
