import GatewayTelemetry
import Synchronization
import TimelineRuntime

/// The activity of the devices, as they report it from any task.
final class FleetRecord: Sendable {
    /// The counters of one kind, or of all.
    struct Stats: Sendable {
        var timelines = 0
        /// Timelines named in notifications.
        var told = 0
        /// Timelines rebuilt and acknowledged.
        var rebuilt = 0
        /// Times from a change to its acknowledged rebuild, since the last window.
        var window = LatencyHistogram()
        /// The same, over all windows.
        var total = LatencyHistogram()
    }

    /// All counters at one moment.
    struct Snapshot: Sendable {
        /// By kind, in the plan's order.
        var kinds: [Stats] = []
        /// The figures of all kinds together.
        var all = Stats()
        /// Open streams.
        var connected = 0
        /// Timelines that were built and acknowledged for the first time.
        var ready = 0
        /// Changes that the gateway accepted.
        var posted = 0
        /// Reloads that are due now.
        var due = 0
        /// Reloads that were due and did not come in time.
        var lost = 0
        /// Rebuilds that no posted change accounts for; counted only if this program posts changes.
        var strays = 0
        /// Notifications that did not verify.
        var unverified = 0
        /// Requests and streams that failed.
        var failures = 0
        var failure: GatewayFailure?
    }

    private struct State {
        var snapshot = Snapshot()
        var due: DueReloads
        /// Timelines whose next rebuild is due to no change.
        var expected: Set<Int> = []
        var readyTimelines: Set<Int> = []
    }

    private let timelineKinds: [Int]
    private let judgesStrays: Bool
    private let state: Mutex<State>

    /// `judgesStrays`: only changes posted here can make a timeline stale. `patience` is the
    /// longest time that a reload may take.
    init(_ plan: FleetPlan, judgesStrays: Bool, patience: Duration) {
        timelineKinds = plan.timelineKinds
        self.judgesStrays = judgesStrays
        var snapshot = Snapshot()
        snapshot.kinds = Array(repeating: Stats(), count: plan.kinds.count)
        for kind in plan.timelineKinds { snapshot.kinds[kind].timelines += 1 }
        snapshot.all.timelines = plan.timelineKinds.count
        state = Mutex(State(snapshot: snapshot, due: DueReloads(patience: patience)))
    }

    /// Returns the current snapshot and begins the next window.
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

    var snapshot: Snapshot {
        state.withLock { state in
            state.snapshot.due = state.due.due
            return state.snapshot
        }
    }

    // MARK: Reports from devices

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

    /// Records that the rebuilds of these timelines were acknowledged, each with all of its changes
    /// up to a sequence.
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

    // MARK: Reports of posts

    func post(_ timelines: Set<Int>) -> DueReloads.ChangeNumber {
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

    /// Counts overdue reloads as lost.
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
