import Glibc

/// What a phase of deliveries cost and how it went.
struct PhaseFigures {
    /// Deliveries by stream and change.
    var count = DeliveryCount()
    /// From the first change to the last delivery.
    var seconds = 0.0
    /// CPU of the server's processes and of this one, nanoseconds.
    var (serverCPU, ownCPU): (Int64, Int64) = (0, 0)
    /// Of all streams: TLS records, reads that brought something, bytes of stream.
    var (records, reads, bytes) = (0, 0, 0)

    /// Server CPU, microseconds a delivery.
    var serverMicroseconds: Double { Double(serverCPU) / 1e3 / Double(max(1, count.delivered)) }
    /// CPU of the generator, microseconds a delivery.
    var ownMicroseconds: Double { Double(ownCPU) / 1e3 / Double(max(1, count.delivered)) }
    /// Deliveries a second.
    var perSecond: Double { Double(count.delivered) / max(seconds, 1e-9) }
    /// Bytes of event stream a delivery.
    var bytesPerDelivery: Double { Double(bytes) / Double(max(1, count.delivered)) }
    /// A percentile of the latency, milliseconds.
    func milliseconds(_ fraction: Double) -> Double { count.latency.percentile(fraction) / 1e6 }
}

/// Posts changes in one rhythm or another and watches the streams.
struct Phases {
    /// Before a phase: what is under way ends.
    private static let settleSeconds = 0.3

    let generator: Generator
    let fleet: StreamFleet
    let poster: Requester
    let target: Target

    /// The next change when the last one has reached everybody, and its post is answered.
    func closed(_ changes: Int) throws -> PhaseFigures {
        try measure {
            for _ in 0..<changes {
                fleet.phase.posted(at: monotonicNanoseconds(), to: fleet.streams.count)
                poster.send(target.changeRequest())
                guard try waitForAll() else { return }
            }
        }
    }

    /// Changes at fixed times, whatever has arrived; latency counts from the time of the schedule.
    func rate(_ changes: Int, perSecond: Double) throws -> PhaseFigures {
        try measure {
            let start = monotonicNanoseconds() + 1_000_000
            let step = 1e9 / perSecond
            func due(_ number: Int) -> Int64 { start + Int64(Double(number) * step) }
            try generator.run(
                seconds: Double(changes) / perSecond + 1,
                timer: {
                    while fleet.phase.changes < changes {
                        let time = due(fleet.phase.changes)
                        if time > monotonicNanoseconds() { return time }
                        fleet.phase.posted(at: time, to: fleet.streams.count)
                        poster.send(target.changeRequest())
                    }
                    return nil
                }, until: { fleet.phase.changes == changes })
            _ = try waitForAll()
        }
    }

    /// All changes at once, in `requests` that are sent without waiting for answers.
    func burst(changes: Int, requests: [[UInt8]]) throws -> PhaseFigures {
        try measure {
            let now = monotonicNanoseconds()
            for _ in 0..<changes { fleet.phase.posted(at: now, to: fleet.streams.count) }
            for request in requests { poster.send(request) }
            _ = try waitForAll()
        }
    }

    /// Whether everything owed came; gives up when nothing comes for a while.
    private func waitForAll() throws -> Bool {
        var seen = -1
        while fleet.phase.outstanding > 0, seen != fleet.phase.delivered {
            seen = fleet.phase.delivered
            try generator.run(seconds: StreamFleet.patienceSeconds) {
                fleet.phase.outstanding == 0 || fleet.failed > 0 || poster.failed > 0
            }
        }
        try poster.waitForAnswers()
        return fleet.phase.outstanding == 0
    }

    private func measure(_ body: () throws -> Void) throws -> PhaseFigures {
        try generator.run(seconds: Self.settleSeconds) { false }
        fleet.startPhase()
        let before = (
            server: ProcessFigures.cpuNanoseconds(target.processes),
            own: ProcessFigures.ownCPUNanoseconds(), traffic: fleet.traffic
        )
        let start = monotonicNanoseconds()
        try body()
        var figures = PhaseFigures()
        figures.serverCPU = ProcessFigures.cpuNanoseconds(target.processes) - before.server
        figures.ownCPU = ProcessFigures.ownCPUNanoseconds() - before.own
        // What nobody owed would come now.
        try generator.run(seconds: Self.settleSeconds) { false }
        let traffic = fleet.traffic
        figures.count = fleet.phase
        figures.seconds = Double(max(fleet.phase.last, start) - start) / 1e9
        figures.records = traffic.records - before.traffic.records
        figures.reads = traffic.reads - before.traffic.reads
        figures.bytes = traffic.bytes - before.traffic.bytes
        return figures
    }
}
