/// `slow`: what readers that do not read cost those that do.
struct SlowReaders {
    private static let receiveBufferBytes: Int32 = 4096
    /// Changes in one post that fills the stalled streams' buffers, and most such posts.
    private static let (fillChanges, fillPostsMax) = (40, 200)
    /// Posts in a row that no stalled stream may have taken anything of.
    private static let quietPosts = 3
    /// The gateway looks every 15 s whether a stream's deadline is over; its default is 30 s.
    private static let deadlineSecondsMax = 90.0
    private static let quickStallSeconds = 2

    let settings: BenchSettings

    /// One repetition.
    func measure(_ tell: (String) -> Void) throws -> [Sample] {
        try Stage.with(settings) { stage in
            tell("registering \(settings.streams) clients")
            let tokens = try stage.makeClients(settings.streams, things: ["0"])
            if settings.isQuick {
                try stage.gateway.stop()
                try stage.gateway.start(
                    options: ["streams.stall": "\(Self.quickStallSeconds)s"])
            }
            let target = stage.target(tokens: tokens, thing: "0")
            let readers = StreamFleet(stage.generator, target)
            defer { readers.close() }
            try readers.open(settings.streams - settings.stalled) { tell("\($0) streams are open") }
            // Made now: the server closes a connection that asks nothing for long.
            let poster = try stage.requester(connections: 1)
            defer { poster.close() }
            let phases = Phases(
                generator: stage.generator, fleet: readers, poster: poster, target: target)
            _ = try phases.closed(settings.warmUpChanges)
            tell("without stalled streams")
            let alone = try (closed: closed(phases), rate: rate(phases))
            tell("\(settings.stalled) streams stop reading")
            let stalled = try stall(stage, target, from: settings.streams - settings.stalled)
            defer { stalled.close() }
            try fill(stage, phases, tell)
            tell("with stalled streams")
            let beside = try (closed: closed(phases), rate: rate(phases))
            tell("waiting until the gateway closes them")
            let closedCount = try waitUntilClosed(stage, stalled)
            let all = [alone.closed, alone.rate, beside.closed, beside.rate]
            return [
                Sample(.slow, "p99, closed loop, none stalled", p99(alone.closed), "ms"),
                Sample(.slow, "p99, closed loop, some stalled", p99(beside.closed), "ms"),
                Sample(.slow, "p99, fixed rate, none stalled", p99(alone.rate), "ms"),
                Sample(.slow, "p99, fixed rate, some stalled", p99(beside.rate), "ms"),
                Sample(
                    .slow, "p99 with / without, closed loop",
                    p99(beside.closed) / max(1e-9, p99(alone.closed)), ""),
                Sample(
                    .slow, "p99 with / without, fixed rate",
                    p99(beside.rate) / max(1e-9, p99(alone.rate)), ""),
                Sample(.slow, "stalled streams closed", Double(closedCount), ""),
                .loss(.slow, "stalled streams left open", settings.stalled - closedCount),
                .loss(.slow, "lost", all.reduce(0) { $0 + $1.count.outstanding }),
                .loss(.slow, "stray", all.reduce(0) { $0 + $1.count.stray }),
                .loss(.slow, "streams broken", readers.failed),
            ]
        }
    }

    private func p99(_ figures: PhaseFigures) -> Double { figures.milliseconds(0.99) }

    private func closed(_ phases: Phases) throws -> PhaseFigures {
        try phases.closed(settings.closedChanges / 2)
    }

    private func rate(_ phases: Phases) throws -> PhaseFigures {
        let perSecond = settings.changesPerSecond(streams: phases.fleet.streams.count)
        return try phases.rate(
            max(1, Int(perSecond * settings.rateSeconds / 2)), perSecond: perSecond)
    }

    /// Streams that are opened, and then never read from again.
    private func stall(
        _ stage: Stage, _ target: Target, from first: Int
    ) throws -> StreamFleet {
        var late = target
        late.streamRequest = { target.streamRequest(first + $0) }
        let fleet = StreamFleet(stage.generator, late)
        try fleet.open(settings.stalled, receiveBufferBytes: Self.receiveBufferBytes)
        fleet.stopReading()
        return fleet
    }

    /// Posts changes until no stalled stream takes any more: until the gateway, post after post,
    /// delivers to the readers alone. A full send buffer may still grow, so once is not enough.
    private func fill(_ stage: Stage, _ phases: Phases, _ tell: (String) -> Void) throws {
        let metric = "timeline_gateway_deliveries_total"
        let things = [String](repeating: "0", count: Self.fillChanges)
        let readersAlone = Double(Self.fillChanges * phases.fleet.streams.count)
        var quietPosts = 0
        for posts in 1...Self.fillPostsMax {
            let before = try stage.gateway.metric(metric)
            let figures = try phases.burst(
                changes: Self.fillChanges, requests: [stage.change(things)])
            guard figures.count.outstanding == 0 else {
                throw BenchFailure("readers missed changes while others stalled")
            }
            guard let before, let after = try stage.gateway.metric(metric) else {
                throw BenchFailure("the gateway does not count deliveries")
            }
            quietPosts = after - before == readersAlone ? quietPosts + 1 : 0
            if quietPosts == Self.quietPosts {
                tell("none takes any more after \(posts * Self.fillChanges) changes")
                return
            }
        }
        throw BenchFailure("the streams that do not read never filled up")
    }

    private func waitUntilClosed(_ stage: Stage, _ stalled: StreamFleet) throws -> Int {
        let metric = "timeline_gateway_streams_stalled_total"
        let end = monotonicNanoseconds() + Int64(Self.deadlineSecondsMax * 1e9)
        while monotonicNanoseconds() < end,
            try stage.gateway.metric(metric) ?? 0 < Double(settings.stalled)
        {
            try stage.generator.run(seconds: 0.5) { false }
        }
        // The end of a stream stands behind what its reader never read.
        stalled.resumeReading()
        try stage.generator.run(seconds: 20) { stalled.failed == settings.stalled }
        return stalled.failed
    }
}
