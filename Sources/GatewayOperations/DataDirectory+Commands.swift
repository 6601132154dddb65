import Foundation
import GatewayCore
import GatewaySigning
import GatewayStorage
import WidgetModel

/// Durations of tokens, for the command line.
package enum TokenDuration {
    /// The maximum life of a client token, in seconds.
    package static let clientMax = LocalIssuer.clientTokenSecondsMax

    /// Reads `90`, `90s`, `15m`, `1h` or `30d` as seconds.
    package static func seconds(_ text: String) -> Int64? { DurationText.seconds(text) }
}

/// Operations of commands that work on a data directory from outside.
extension DataDirectory {
    var now: Int64 { Int64(Date().timeIntervalSince1970) }

    /// Checks that the directory exists. `option` names the option with its path.
    package func requireServed(option: String = "data") throws(Faults) {
        guard FileManager.default.fileExists(atPath: path) else {
            throw Faults(option, "the directory \(path) does not exist")
        }
    }

    /// Opens a new epoch, which voids all older ones; returns its number. Throws
    /// `StoreError.alreadyInUse` while a gateway runs on the directory.
    package func openNewEpoch() async throws -> Int64 {
        try requireServed()
        let store = try SQLiteStore(directory: path, opening: .existing)
        let nonce = try secureRandom(count: 8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        // Beyond the epochs of starts that the restore undid.
        let beyond = EpochLedger.ordinalBeyondLoss(after: 0, now: now)
        let ordinal = try store.openEpoch(
            id: nonce, atLeast: Int64(beyond), now: now * 1000, voidOlder: true
        ).ordinal
        try store.renewMark()
        try await store.close()
        return ordinal
    }
}
