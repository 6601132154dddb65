import GatewayTestSupport

/// Collects the record of a run from all its threads.
final class Recorder: Sendable {
    private let start = ContinuousClock.now
    private let state = TestHTTPMonitor(Record())

    /// Seconds since the run began.
    var now: Double { start.duration(to: .now) / .seconds(1) }

    /// Adds an entry at the present time.
    func add(_ event: Record.Event) {
        state.update { $0.entries.append(.init(time: now, event: event)) }
    }

    /// Adds a promise that the row saw broken, unless `holds`.
    func require(_ holds: Bool, _ text: @autoclosure () -> String) {
        if !holds { add(.broken(text())) }
    }

    /// The record so far.
    var record: Record { state.update { $0 } }
}
