import OpenMetrics
import Synchronization
import TimelineClient

/// What the devices did, as they report it from whatever task they run on.
final class FleetRecord: Sendable {
    /// The figures of one kind, or of all.
    struct Figures: Sendable {
        /// Timelines placed.
        var timelines = 0
        /// Timelines that notifications named.
        var told = 0
        /// Timelines rebuilt and acknowledged.
        var rebuilt = 0
        /// From a change to its acknowledged rebuild, since the last window.
        var window = LatencyHistogram()
        /// The same, of all windows.
        var total = LatencyHistogram()
    }

    /// Everything known at one moment.
    struct Snapshot: Sendable {
        /// By kind, in the plan's order.
        var kinds: [Figures] = []
        /// Of all kinds.
        var all = Figures()
        /// Streams open.
        var connected = 0
        /// Timelines that were built and acknowledged for the first time.
        var ready = 0
        /// Changes that the gateway took.
        var posted = 0
        /// Reloads that are due now.
        var due = 0
        /// Reloads that were due and did not come in time.
        var lost = 0
        /// Reloads that nothing posted asked for; never counted without posts of one's own.
        var strays = 0
        /// Notifications that did not verify.
        var unverified = 0
        /// Requests and streams that failed.
        var failures = 0
        /// The last failure.
        var failure: GatewayFailure?
    }

    private struct State {
        var snapshot = Snapshot()
        var due: DueReloads
        /// The next rebuild of these is nobody's change.
        var expected: Set<Int> = []
        var readyTimelines: Set<Int> = []
    }

    private let timelineKinds: [Int]
    private let judgesStrays: Bool
    private let state: Mutex<State>

    /// - Parameters:
    ///   - judgesStrays: Whether nothing but what is posted here changes anything.
    ///   - patience: How late a reload may be.
    init(_ plan: FleetPlan, judgesStrays: Bool, patience: Duration) {
        timelineKinds = plan.timelineKinds
        self.judgesStrays = judgesStrays
        var snapshot = Snapshot()
        snapshot.kinds = Array(repeating: Figures(), count: plan.kinds.count)
        for kind in plan.timelineKinds { snapshot.kinds[kind].timelines += 1 }
        snapshot.all.timelines = plan.timelineKinds.count
        state = Mutex(State(snapshot: snapshot, due: DueReloads(patience: patience)))
    }

    /// What is known now; the next window begins.
    func endWindow() -> Snapshot {
        state.withLock { state in
            state.snapshot.due = state.due.due
            defer {
                state.snapshot.all.window = LatencyHistogram()
                for kind in state.snapshot.kinds.indices {
                    state.snapshot.kinds[kind].window = LatencyHistogram()
                }
            }
            return state.snapshot
        }
    }

    /// What is known now.
    var snapshot: Snapshot {
        state.withLock { state in
            state.snapshot.due = state.due.due
            return state.snapshot
        }
    }

    // MARK: What devices report

    func opened() { state.withLock { $0.snapshot.connected += 1 } }

    func closed() { state.withLock { $0.snapshot.connected -= 1 } }

    func unverified() { state.withLock { $0.snapshot.unverified += 1 } }

    func failed(_ failure: GatewayFailure) {
        state.withLock { state in
            state.snapshot.failures += 1
            state.snapshot.failure = failure
        }
    }

    func expectRebuild(of timelines: some Sequence<Int>) {
        state.withLock { $0.expected.formUnion(timelines) }
    }

    func told(_ timelines: [Int]) {
        state.withLock { state in
            state.snapshot.all.told += timelines.count
            for timeline in timelines { state.snapshot.kinds[timelineKinds[timeline]].told += 1 }
        }
    }

    /// The rebuilds of these timelines were acknowledged, with every change of theirs up to a
    /// sequence.
    func rebuilt(_ timelines: [Int: UInt64]) {
        let now = ContinuousClock.now
        state.withLock { state in
            for (timeline, sequence) in timelines {
                state.snapshot.all.rebuilt += 1
                state.snapshot.kinds[timelineKinds[timeline]].rebuilt += 1
                if state.readyTimelines.insert(timeline).inserted { state.snapshot.ready += 1 }
                var outcome = state.due.rebuilt(timeline, upTo: sequence, at: now)
                if state.expected.remove(timeline) != nil {
                    outcome.strays = max(0, outcome.strays - 1)
                }
                note(outcome, in: &state)
            }
        }
    }

    // MARK: What is posted

    func post(_ timelines: [Int: Set<Int>]) -> DueReloads.ChangeNumber {
        state.withLock { $0.due.post(timelines, at: .now) }
    }

    func accepted(_ change: DueReloads.ChangeNumber, at sequence: UInt64) {
        state.withLock { state in
            state.snapshot.posted += 1
            note(state.due.accepted(change, at: sequence), in: &state)
        }
    }

    func refused(_ change: DueReloads.ChangeNumber) {
        state.withLock { note($0.due.refused(change), in: &$0) }
    }

    /// Counts as lost what is due for too long.
    func giveUp() {
        state.withLock { $0.snapshot.lost += $0.due.giveUp(now: .now) }
    }

    private func note(_ outcome: DueReloads.Outcome, in state: inout State) {
        for (timeline, time) in outcome.took {
            let kind = timelineKinds[timeline]
            state.snapshot.all.window.record(time)
            state.snapshot.all.total.record(time)
            state.snapshot.kinds[kind].window.record(time)
            state.snapshot.kinds[kind].total.record(time)
        }
        if judgesStrays { state.snapshot.strays += outcome.strays }
    }
}
