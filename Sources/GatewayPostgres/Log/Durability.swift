/// The server's settings that decide whether a commit survives.
package struct Durability: Sendable, Equatable {
    /// The promise of a 202, which an operator configures.
    package enum Requirement: Sendable, Equatable {
        /// A commit is flushed on the primary.
        case primary
        /// A commit is flushed on the primary and on a standby.
        case quorum
    }

    /// `synchronous_standby_names`; empty when no commit waits for a standby.
    package var standbyNames: String
    /// `fsync`.
    package var isFlushed: Bool
    package var writesFullPages: Bool

    package init(standbyNames: String, isFlushed: Bool, writesFullPages: Bool) {
        self.standbyNames = standbyNames
        self.isFlushed = isFlushed
        self.writesFullPages = writesFullPages
    }

    /// Returns why these settings do not keep what is required; `nil` if they do.
    package func objection(to requirement: Requirement) -> String? {
        if !isFlushed { return "fsync is off on the server; set it to on" }
        if !writesFullPages { return "full_page_writes is off on the server; set it to on" }
        let isEmpty = standbyNames.allSatisfy { $0 == " " }
        guard requirement == .quorum, isEmpty else { return nil }
        return "synchronous_standby_names is empty on the server; name the standbys, or require"
            + " the primary only"
    }
}

extension Durability {
    /// Reads `synchronous_standby_names`, `fsync` and `full_page_writes`, from the column with this
    /// index.
    init(_ row: PostgresRow, column: Int) throws(PostgresError) {
        self.init(
            standbyNames: try row.text(column), isFlushed: try row.text(column + 1) == "on",
            writesFullPages: try row.text(column + 2) == "on")
    }
}
