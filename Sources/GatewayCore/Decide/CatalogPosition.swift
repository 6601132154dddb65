import Synchronization

/// The position in the log at which a catalog came into force.
///
/// A catalog is compiled before its sequence is known: the log's writer thread assigns sequences,
/// and the sender determines how long compiling takes. All declarations that are new in a rule set
/// share one position, which ``RuleSet/comeIntoForce(at:)`` sets.
final class CatalogPosition: Sendable {
    private let value: Atomic<UInt64>

    init(_ sequence: UInt64) {
        value = Atomic(sequence)
    }

    /// The sequence of the catalog's entry.
    ///
    /// It is set before the entry is published. Readers receive the entry through a lock, which
    /// orders memory accesses.
    var sequence: UInt64 {
        get { value.load(ordering: .relaxed) }
        set { value.store(newValue, ordering: .relaxed) }
    }
}
