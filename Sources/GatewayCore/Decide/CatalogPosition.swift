import Synchronization

/// The position in the log at which a catalog came into force.
///
/// A catalog is compiled before its place in the log is known, for compiling costs what its sender
/// chooses to send and places are assigned on the log's writer. Everything that a rule set declares
/// anew shares the one position that ``RuleSet/comeIntoForce(at:)`` sets.
final class CatalogPosition: Sendable {
    private let value: Atomic<UInt64>

    init(_ sequence: UInt64) {
        value = Atomic(sequence)
    }

    /// The sequence of the catalog's entry.
    ///
    /// It is set before the entry is published. Readers receive the entry through a lock, which
    /// orders memory for them.
    var sequence: UInt64 {
        get { value.load(ordering: .relaxed) }
        set { value.store(newValue, ordering: .relaxed) }
    }
}
