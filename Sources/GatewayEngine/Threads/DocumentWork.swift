/// Runs document work on a separate thread, apps in turn, if it could take longer than a turn of a
/// thread that all requests share may last.
///
/// A parser does not yield, and one document within the limits costs up to hundreds of
/// milliseconds. On this thread such documents wait for each other, and nothing else waits for
/// them.
package struct DocumentWork: Sendable {
    /// Work on a document of fewer bytes runs on the calling thread: far less than a turn may cost.
    static let smallBytesMax = 16 * 1024

    package enum Size: Sendable {
        /// Linear in this number of bytes.
        case bytes(Int)
        /// More than a turn, whatever the input: a catalog, an explanation, a long list.
        case large
    }

    private let threads: LaneExecutor

    init(turn: TurnRecorder) {
        // One thread: the other cores stay free for everything else, and the kernel prefers the
        // other threads on this one.
        threads = LaneExecutor(name: "documents", threads: 1, niceness: 10, turn: turn)
    }

    /// Runs `work` on the calling thread or on the document thread, by its size.
    ///
    /// - Parameter app: The app whose turn it uses.
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

    /// Releases an object on the document thread, after its other owners had time to release it.
    ///
    /// The last owner of a compiled catalog frees its tens of thousands of parts, which takes
    /// longer than a turn of an event loop may last.
    ///
    /// - Parameter delay: The time that the other owners have.
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
