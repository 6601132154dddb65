/// The limits of a batch and of what waits for the next one.
package struct BatchLimits: Sendable {
    /// The maximum number of records in a batch.
    package var changes = 1_000
    /// The maximum number of registrations in a batch, and of keys in one reading of rows.
    package var registrations = 100
    /// The maximum bytes of records and rows in a batch.
    package var bytes = 8 << 20
    /// The maximum number of writes that wait, and of rows to read.
    package var pendingPosts = 8_192
    /// The maximum bytes of records and rows that wait.
    package var pendingBytes = 64 << 20
    /// The longest time that a write or a reading waits for its outcome, and a request for its
    /// answer, milliseconds.
    package var deadline: Int64 = 3_000
    /// The longest time to connect to one server, milliseconds.
    package var connectDeadline: Int64 = 2_000
    /// The shortest time between two notifications, milliseconds.
    package var notifyInterval: Int64 = 5

    /// The defaults.
    package init() {}
}
