import GatewayTestSupport

extension Repetition {
    private static let receiveBufferBytes: Int32 = 4096
    /// Changes in one post that fills the stalled streams' buffers, and most such posts.
    private static let (fillChanges, fillPostsMax) = (40, 200)
    /// Posts in a row that no stalled stream may have read anything of.
    private static let quietPosts = 3
    /// The gateway looks every 15 s whether a stream's deadline is over; its default is 30 s.
    private static let deadlineSecondsMax = 90.0

    /// Measures `slow`: the cost of readers that do not read for those that do.
    func slowReaders() throws -> [Sample] {
        let options = settings.isQuick ? ["streams: { stall: 2s }"] : []
        return try Stage.with(settings, options: options) { stage in
            tell("registering \(settings.streams) clients")
            let tokens = try stage.makeClients(settings.streams)
            let readers = StreamFleet(stage, tokens: tokens)
            defer { readers.close() }
            try open(settings.streams - settings.stalled, of: readers)
            let phases = try Phases(stage, readers, warmUpChanges: settings.warmUpChanges)
            tell("without stalled streams")
            let alone = try (closed: closed(phases), rate: rate(phases))
            tell("\(settings.stalled) streams stop reading")
            let stalled = StreamFleet(
                stage, tokens: tokens, first: settings.streams - settings.stalled)
            defer { stalled.close() }
            try stalled.open(settings.stalled, receiveBufferBytes: Self.receiveBufferBytes)
            stalled.stopReading()
            try fill(stage, phases)
            tell("with stalled streams")
            let beside = try (closed: closed(phases), rate: rate(phases))
            tell("waiting until the gateway closes them")
            let closedCount = try waitUntilClosed(stage, stalled)
            var samples: [Sample] = []
            for (rhythm, alone, beside) in [
                ("closed loop", alone.closed, beside.closed),
                ("fixed rate", alone.rate, beside.rate),
            ] {
                let (before, after) = (alone.milliseconds(0.99), beside.milliseconds(0.99))
                samples += [
                    Sample(.slow, "p99, \(rhythm), none stalled", before, unit: "ms"),
                    Sample(.slow, "p99, \(rhythm), some stalled", after, unit: "ms"),
                    Sample(.slow, "p99 with / without, \(rhythm)", after / max(1e-9, before)),
                ]
            }
            return samples + [
                Sample(.slow, "stalled streams closed", Double(closedCount)),
                .loss(.slow, "stalled streams left open", settings.stalled - closedCount),
            ]
                + losses(
                    .slow, in: [alone.closed, alone.rate, beside.closed, beside.rate], of: readers)
        }
    }

    private func closed(_ phases: Phases) throws -> PhaseStats {
        try phases.closed(settings.closedChanges / 2)
    }

    private func rate(_ phases: Phases) throws -> PhaseStats {
        let perSecond = settings.changesPerSecond(streams: phases.fleet.streams.count)
        return try phases.rate(
            max(1, Int(perSecond * settings.rateSeconds / 2)), perSecond: perSecond)
    }

    /// Posts changes until no stalled stream reads any more: until the gateway, post after post,
    /// delivers to the readers alone. A full send buffer may still grow, so once is not enough.
    private func fill(_ stage: Stage, _ phases: Phases) throws {
        let metric = "timeline_gateway_deliveries_total"
        let things = [String](repeating: "0", count: Self.fillChanges)
        let readersAlone = Double(Self.fillChanges * phases.fleet.streams.count)
        var quietPosts = 0
        for posts in 1...Self.fillPostsMax {
            let before = try stage.gateway.metrics()[metric]
            let figures = try phases.burst(
                changes: Self.fillChanges, requests: [stage.change(things)])
            guard figures.count.outstanding == 0 else {
                throw BenchFailure("readers missed changes while others stalled")
            }
            guard let before, let after = try stage.gateway.metrics()[metric] else {
                throw BenchFailure("the gateway does not count deliveries")
            }
            quietPosts = after - before == readersAlone ? quietPosts + 1 : 0
            if quietPosts == Self.quietPosts {
                tell("all stopped reading after \(posts * Self.fillChanges) changes")
                return
            }
        }
        throw BenchFailure("the streams that do not read never filled up")
    }

    private func waitUntilClosed(_ stage: Stage, _ stalled: StreamFleet) throws -> Int {
        let metric = "timeline_gateway_streams_stalled_total"
        let end = monotonicNanoseconds() + Int64(Self.deadlineSecondsMax * 1e9)
        while monotonicNanoseconds() < end,
            try stage.gateway.metrics()[metric] ?? 0 < Double(settings.stalled)
        {
            try stage.generator.run(seconds: 0.5) { false }
        }
        // The end of a stream stands behind what its reader never read.
        stalled.resumeReading()
        try stage.generator.run(seconds: 20) { stalled.failed == settings.stalled }
        return stalled.failed
    }
}
