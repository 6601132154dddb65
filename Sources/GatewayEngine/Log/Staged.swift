/// A value that log entries change before their transaction is on disk.
///
/// A failed transaction returns all its sequences: the next job that would be assigned one of them
/// finds the previous value.
struct Staged<Value: Sendable>: Sendable {
    /// The value with all changes so far.
    private(set) var value: Value
    /// The first sequence whose change may still fail, and the value before it.
    private var pending: (first: UInt64, before: Value)?

    init(_ value: Value) { self.value = value }

    /// Undoes the changes of a failed transaction, if `next` shows that one failed.
    ///
    /// - Parameter next: The sequence that is assigned next.
    mutating func rollBack(before next: UInt64) {
        guard let pending, next <= pending.first else { return }
        value = pending.before
        self.pending = nil
    }

    /// Changes the value by the entry at `sequence`.
    mutating func change(at sequence: UInt64, _ body: (inout Value) -> Void) {
        if pending == nil { pending = (sequence, value) }
        body(&value)
    }

    /// Keeps the change at `sequence`, which is on disk, and with it all changes of its
    /// transaction.
    mutating func commit(_ sequence: UInt64) {
        if let pending, pending.first <= sequence { self.pending = nil }
    }
}
