import CoreMetrics
import GatewayCore
import GatewayOperations
import GatewayTLS
import HeapModule
import NIOCore

/// Collapse windows, heartbeats and deadlines: one timer per second for all streams, and one for
/// the next window.
extension ShardLoop {
    /// The number of closed streams' deadlines, in excess of the open streams, that triggers a
    /// sweep.
    private static let deadlinesSlack = 1_024

    /// The time at which a stream has to end.
    struct Deadline: Comparable {
        let at: Int64
        let id: StreamID
        static func < (left: Deadline, right: Deadline) -> Bool { left.at < right.at }
    }

    struct LoopTimer {
        var heartbeats: HeartbeatWheel
        var deadlines = Heap<Deadline>()
        var windowTimer: (at: Int64, task: Scheduled<Void>)?
        var ticking: RepeatedTask?

        init(_ settings: StreamSettings) {
            heartbeats = HeartbeatWheel(interval: settings.heartbeatSeconds)
        }
    }

    /// Monotonic milliseconds.
    var now: Int64 { clock.now() }

    /// Starts the loop's periodic timer; it runs until ``drain()`` or ``stop()``.
    package func start() {
        loop.execute { [self] in
            timer.ticking = loop.scheduleRepeatedTask(
                initialDelay: .seconds(1), delay: .seconds(1)
            ) { _ in self.tick() }
        }
    }

    func stopTimer() {
        timer.ticking?.cancel()
        timer.windowTimer?.task.cancel()
    }

    func note(_ id: StreamID, wantsHeartbeat: Bool, expires: Int64) {
        if wantsHeartbeat { timer.heartbeats.add(id) }
        let life = max(0, min(expires - clock.wallSeconds(), 365 * 24 * 3600))
        timer.deadlines.insert(Deadline(at: now + life * 1000, id: id))
    }

    func scheduleWindow() {
        guard let end = shard.nextWindowEnd else { return }
        if let timer = timer.windowTimer, timer.at <= end { return }
        timer.windowTimer?.task.cancel()
        let task = loop.scheduleTask(in: .milliseconds(max(0, end - now))) { self.endWindows() }
        timer.windowTimer = (end, task)
    }

    func endWindows() {
        timer.windowTimer = nil
        guard !isDraining else { return }
        shard.endWindows(now: now)
        pump()
        scheduleWindow()
    }

    func tick() {
        guard !isDraining else { return }
        let due = timer.heartbeats.advance()
        publishFigures()
        let now = now
        for id in due where isOpen(id) {
            timer.heartbeats.add(id)
            if let since = details[Int(id.slot)]?.stalledSince {
                if now - since >= settings.stallMilliseconds { closeStalled(id) }
            } else {
                sendHeartbeat(id)
            }
        }
        // Tokens outlive most streams: entries of closed streams must not accumulate.
        if timer.deadlines.count > 2 * openStreams + Self.deadlinesSlack {
            timer.deadlines = Heap(timer.deadlines.unordered.filter { isOpen($0.id) })
        }
        while let deadline = timer.deadlines.min, deadline.at <= now {
            timer.deadlines.removeMin()
            end(deadline.id)
        }
    }

    /// Closes a stream whose reader accepts nothing, so a farewell would not arrive either.
    private func closeStalled(_ id: StreamID) {
        metrics.streamsStalled.increment()
        let session = sessions[Int(id.slot)]
        if let stream = session.stream { connections.close(stream) } else { session.sink?.end(nil) }
        close(id)
    }
}
