import GatewayPostgres
import Logging

/// The account of a node's start, for operators.
package struct StartReport: Sendable, Equatable {
    /// The last sequence of the state that the node began with.
    package let position: Int64
    /// The sequence up to which nothing is known.
    package let floor: UInt64
    /// The age of the snapshot, milliseconds; `nil` for the floor of the log.
    package let age: Int64?
    /// The reasons why snapshots were passed over, by position.
    package let misfits: [Int64: SnapshotReader.Misfit]

    /// Logs it.
    ///
    /// - Parameter batches: The number of rows of the log that were read after it.
    func log(batches: Int, to logger: Logger) {
        var metadata: Logger.Metadata = [
            "position": "\(position)", "floor": "\(floor)", "rows": "\(batches)",
        ]
        if let age { metadata["ageSeconds"] = "\(age / 1_000)" }
        if !misfits.isEmpty {
            metadata["passedOver"] = .string(
                misfits.sorted { $0.key > $1.key }.map { "\($0.key): \($0.value.reason)" }
                    .joined(separator: "; "))
        }
        logger.notice(
            age == nil
                ? "this node began at the floor of the fleet's log"
                : "this node began from a snapshot of the fleet's state", metadata: metadata)
    }
}

extension SnapshotReader.Misfit {
    /// The reason, for operators.
    fileprivate var reason: String {
        switch self {
        case .format(let format): "format \(format), which this program does not read"
        case .otherHistory: "the log has another history there"
        case .missingPiece: "a piece is missing"
        case .checksum: "wrong checksum"
        case .malformed: "it is malformed, or does not fit the log's catalogs"
        }
    }
}
