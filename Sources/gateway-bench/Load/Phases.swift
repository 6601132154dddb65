import GatewayTelemetry
import Glibc

/// The cost and the outcome of one phase of deliveries.
struct PhaseStats {
    /// Deliveries by stream and change.
    var count = DeliveryCount()
    /// The time from the first change to the last delivery.
    var seconds = 0.0
    /// CPU of the server and of this process, nanoseconds.
    var (serverCPU, ownCPU): (Int64, Int64) = (0, 0)
    /// Bytes of event stream, of all streams.
    var bytes = 0

    var serverMicroseconds: Double { perDelivery(Double(serverCPU) / 1e3) }
    /// CPU of the generator, microseconds a delivery.
    var ownMicroseconds: Double { perDelivery(Double(ownCPU) / 1e3) }
    /// Bytes of event stream a delivery.
    var bytesPerDelivery: Double { perDelivery(Double(bytes)) }
    var perSecond: Double { Double(count.delivered) / max(seconds, 1e-9) }

    /// Returns a percentile of the latency, milliseconds.
    func milliseconds(_ fraction: Double) -> Double {
        (count.latency.percentile(fraction) ?? 0) / 1e6
    }

    private func perDelivery(_ value: Double) -> Double { value / Double(max(1, count.delivered)) }
}

/// Posts changes in one rhythm or another and watches the streams.
struct Phases {
    /// Before a phase: what is in flight ends.
    private static let settleSeconds = 0.3

    let stage: Stage
    let fleet: StreamFleet
    private let poster: Requester
    private var generator: Generator { stage.generator }

    /// Opens a connection for the changes, and posts some that are not measured.
    init(_ stage: Stage, _ fleet: StreamFleet, warmUpChanges: Int) throws {
        (self.stage, self.fleet) = (stage, fleet)
        poster = try stage.requester(connections: 1)
        warmUp = PhaseStats()
        warmUp = try closed(warmUpChanges)
    }

    /// The outcome of the changes that are not measured.
    private(set) var warmUp: PhaseStats

    /// Posts each change when the last one has reached all streams, and its post is answered.
    func closed(_ changes: Int) throws -> PhaseStats {
        try measure {
            for _ in 0..<changes {
                fleet.phase.posted(at: monotonicNanoseconds(), to: fleet.streams.count)
                poster.send(stage.change(["0"]))
                guard try waitForAll() else { return }
            }
        }
    }

    /// Posts changes at fixed times, whatever has arrived; latency counts from the scheduled time.
    /// `thing` is what a change is of, by the change's number. `streams` is the number of streams
    /// at which a change is due; `nil` for all.
    func rate(
        _ changes: Int, perSecond: Double, thing: (Int) -> String = { _ in "0" },
        streams: Int? = nil
    ) throws -> PhaseStats {
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
                        let number = fleet.phase.changes
                        fleet.phase.posted(at: time, to: streams ?? fleet.streams.count)
                        poster.send(stage.change([thing(number)]))
                    }
                    return nil
                }, until: { fleet.phase.changes == changes })
            _ = try waitForAll()
        }
    }

    /// Returns whether everything due came; gives up when nothing comes for a while.
    private func waitForAll() throws -> Bool {
        var seen = -1
        while fleet.phase.outstanding > 0, seen != fleet.phase.delivered {
            seen = fleet.phase.delivered
            try generator.run(seconds: StreamFleet.timeoutSeconds) {
                fleet.phase.outstanding == 0 || fleet.failed > 0 || poster.failed > 0
            }
        }
        try poster.waitForAnswers()
        return fleet.phase.outstanding == 0
    }

    private func measure(_ body: () throws -> Void) throws -> PhaseStats {
        try generator.run(seconds: Self.settleSeconds) { false }
        fleet.startPhase()
        let before = (
            server: stage.cpuNanoseconds,
            own: ProcessStats.ownCPUNanoseconds(), bytes: fleet.streamBytes
        )
        let start = monotonicNanoseconds()
        try body()
        var figures = PhaseStats()
        figures.serverCPU = stage.cpuNanoseconds - before.server
        figures.ownCPU = ProcessStats.ownCPUNanoseconds() - before.own
        // Stray deliveries would come now.
        try generator.run(seconds: Self.settleSeconds) { false }
        figures.count = fleet.phase
        figures.seconds = Double(max(fleet.phase.last, start) - start) / 1e9
        figures.bytes = fleet.streamBytes - before.bytes
        return figures
    }
}
