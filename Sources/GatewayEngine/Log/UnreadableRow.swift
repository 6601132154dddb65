import GatewayStorage

/// A row of the store that a start cannot read: the file is damaged, or a newer version wrote it.
struct UnreadableRow: Error, CustomStringConvertible {
    /// Names the row, as an operator would.
    let row: String
    /// Why it cannot be read.
    let reason: String

    var description: String {
        "the store is damaged: \(row) cannot be read (\(reason)); look at the disk, then restore a "
            + "backup with `timelinectl restore`"
    }

    /// Returns what `read` returns, and names the row in the error that it throws.
    static func naming<Value>(_ row: @autoclosure () -> String, _ read: () throws -> Value) throws
        -> Value
    {
        do {
            return try read()
        } catch {
            throw UnreadableRow(row: row(), reason: "\(error)")
        }
    }

    /// Returns what `read` returns, and names the client whose row it reads in the error that it
    /// throws.
    static func naming<Value>(
        _ part: String, _ key: RegistrationKey, _ read: () throws -> Value
    ) throws -> Value {
        try naming("\(part) the client \(key.client) of the app \(key.app)", read)
    }
}
