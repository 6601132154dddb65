import GatewayStorage

/// A row of the store that cannot be read at startup: damaged, or written by a newer version.
package struct UnreadableRow: Error, CustomStringConvertible {
    /// The row's name for operators.
    let row: String
    /// The reason why it cannot be read.
    let reason: String

    package var description: String {
        "the store is damaged: \(row) cannot be read (\(reason)); check the disk, then restore a "
            + "backup with `timelinectl restore`"
    }

    /// Returns the result of `read`; adds the row's name to an error that it throws.
    package static func naming<Value>(
        _ row: @autoclosure () -> String, _ read: () throws -> Value
    ) throws -> Value {
        do {
            return try read()
        } catch {
            throw UnreadableRow(row: row(), reason: "\(error)")
        }
    }

    /// Returns the result of `read`; adds the client whose row it reads to an error that it throws.
    package static func naming<Value>(
        _ part: String, _ key: RegistrationKey, _ read: () throws -> Value
    ) throws -> Value {
        try naming("\(part) the client \(key.client) of the app \(key.app)", read)
    }
}
