import GatewayTelemetry

/// Counts the deliveries of a phase: due, received, and received though they were not due.
///
/// The k-th event on a stream stands for the k-th change of the phase, and its latency counts from
/// that change's time.
struct DeliveryCount {
    /// The times from a change to its arrival at one stream.
    private(set) var latency = LatencyHistogram()
    private(set) var delivered = 0
    /// Events beyond those posted.
    private(set) var stray = 0
    /// Deliveries that are due and did not come yet.
    private(set) var outstanding = 0
    /// When the last delivery came, in monotonic nanoseconds.
    private(set) var last: Int64 = 0
    private var times: [Int64] = []

    var changes: Int { times.count }

    /// Records a change that was posted, or should have been, at `time`; it is due at `streams` streams.
    mutating func posted(at time: Int64, to streams: Int) {
        times.append(time)
        outstanding += streams
    }

    /// Records that a stream's event number `change`, counted from 0, came.
    mutating func delivered(change: Int, at time: Int64) {
        guard change < times.count else {
            stray += 1
            return
        }
        latency.record(nanoseconds: time - times[change])
        delivered += 1
        outstanding -= 1
        last = time
    }
}
