import Foundation

/// How long tests wait for what must come: the only limit of a positive wait. It says when a test
/// gives up, never how fast the gateway has to be.
package enum Patience {
    /// 120 s times the factor in the environment's `TIMELINE_TEST_PATIENCE`, which is 1 by default.
    package static let seconds =
        120
        * (ProcessInfo.processInfo.environment["TIMELINE_TEST_PATIENCE"].flatMap(Double.init) ?? 1)

    package static var duration: Duration { .seconds(seconds) }
    /// The same in milliseconds.
    package static var milliseconds: Int { Int(seconds * 1_000) }
}

/// Blocks the thread until a condition holds, looking every 20 ms; for tests that are not `async`.
/// Throws a `TestFailure` that starts with `what` when the patience is over.
package func blockUntil(
    _ what: String, details: () -> String = { "" }, _ condition: () throws -> Bool
) throws {
    let end = ContinuousClock.now + Patience.duration
    while try !condition() {
        guard ContinuousClock.now < end else { throw TestFailure("not \(what) \(details())") }
        usleep(20_000)
    }
}

/// Waits until a condition holds, looking every 20 ms. Throws a `TestFailure` that starts with
/// `what` when the patience is over.
nonisolated(nonsending) package func eventually(
    _ what: String, details: () -> String = { "" }, _ condition: () async throws -> Bool
) async throws {
    let end = ContinuousClock.now + Patience.duration
    while try await !condition() {
        guard ContinuousClock.now < end else { throw TestFailure("not \(what) \(details())") }
        try await Task.sleep(for: .milliseconds(20))
    }
}
