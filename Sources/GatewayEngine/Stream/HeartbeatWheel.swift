import GatewayCore

/// The streams of a loop, by the second in which their heartbeat is due.
struct HeartbeatWheel {
    private var seconds: [[StreamID]]
    private var place = 0

    /// - Parameter interval: The time between two heartbeats of a stream, in seconds.
    init(interval: Int) {
        seconds = Array(repeating: [], count: max(1, interval))
    }

    /// Adds a stream whose heartbeat was sent now: the next one is due after the interval.
    mutating func add(_ id: StreamID) { seconds[place].append(id) }

    /// Goes on by a second and removes the streams whose heartbeat is due; those that remain open
    /// have to be added again.
    mutating func advance() -> [StreamID] {
        place = (place + 1) % seconds.count
        let due = seconds[place]
        seconds[place].removeAll(keepingCapacity: true)
        return due
    }
}
