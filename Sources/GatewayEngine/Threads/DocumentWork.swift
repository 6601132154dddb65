import GatewayCore

/// Runs work on documents on a thread of their own, apps in turn, where it could hold a thread that
/// all requests share for longer than a turn may last.
///
/// A parser does not yield, and one document of the size that the limits allow costs up to hundreds of
/// milliseconds. On this thread such documents wait for each other, and nothing else waits for them.
package struct DocumentWork: Sendable {
    /// Work on a document of fewer bytes stays where it is: far less than a turn may cost.
    static let smallBytesMax = 16 * 1024

    /// The amount of work.
    package enum Size: Sendable {
        /// Linear in these bytes.
        case bytes(Int)
        /// More than a turn, whatever was sent: a catalog, an explanation, a long list.
        case large
    }

    private let threads: LaneExecutor

    init(turn: TurnRecorder) {
        // One thread: another core is left to everybody else, and the kernel prefers the others on
        // this one.
        threads = LaneExecutor(name: "documents", threads: 1, niceness: 10, turn: turn)
    }

    /// Runs `work` here or on the thread for documents, by its size.
    ///
    /// - Parameter app: Whose turn it uses.
    package func run<T, Failure: Error>(
        _ size: Size, for app: String, _ work: () async throws(Failure) -> T
    ) async throws(Failure) -> T {
        let cost: Int
        switch size {
        case .bytes(let bytes) where bytes < Self.smallBytesMax: return try await work()
        case .bytes(let bytes): cost = bytes
        case .large: cost = 256 * 1024
        }
        return try await withTaskExecutorPreference(
            threads.lane(app, cost: cost), operation: work)
    }

    /// Releases an object on the thread for documents, after all others have had time to release it.
    ///
    /// Freeing the tens of thousands of parts of a compiled catalog takes longer than a turn of an
    /// event loop may last, and it falls to whoever releases the catalog last.
    ///
    /// - Parameter delay: The time that the others have.
    package func release(
        _ object: (any AnyObject & Sendable)?, of app: String, after delay: Duration = .seconds(1)
    ) {
        guard let object else { return }
        Task(executorPreference: threads.lane(app, cost: 1)) {
            try? await Task.sleep(for: delay)
            withExtendedLifetime(object) {}
        }
    }
}
