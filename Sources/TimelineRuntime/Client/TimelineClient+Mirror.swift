import Foundation
import WidgetViews

struct RebuildWaiter {
    /// Only builds that begin after this time count.
    let after: Duration
    let continuation: CheckedContinuation<TimelineArchive?, Never>
}

extension TimelineClient: MirroredWidgetHost {
    /// The timelines that a Mac may show: none whose data protection keeps them from Macs.
    public var mirroredTimelines: [TimelineArchive] {
        guard let device = configuration.device else { return [] }
        let place = WidgetLocation.iPhoneWidgetsOnMac
        return placedWidgets.compactMap { widget in
            guard let traits = declared.traits(ofKind: widget.kind),
                (try? declared.rules.check(widget.family, with: traits, at: place, on: device))
                    != nil
            else { return nil }
            return timelines[widget]
        }
    }

    /// Performs an intent for a Mac that shows this iPhone's widget; see ``MirroredWidgets``.
    ///
    /// - Throws: ``InteractionRefusal``, or ``WidgetFailure`` when the timeline could not be built.
    public func perform(
        _ call: IntentCall, ofMirrored widget: WidgetInfo
    ) async throws -> MirroredTimeline {
        if let platform = configuration.device?.platform,
            let refusal = declared.rules.interactionRefusal(
                for: widget.family, on: platform, lock: lock)
        {
            throw refusal
        }
        guard timelines[widget]?.anyNode(at: .now)?.control(of: call) != nil else {
            throw InteractionRefusal.notShown
        }
        handle(.interacting(widget))
        let failure = await run(call, of: widget)
        let after = now
        let cursor = await position()
        let timeline = await withCheckedContinuation {
            (continuation: CheckedContinuation<TimelineArchive?, Never>) in
            guard isRunning, widgets.contains(widget) else {
                continuation.resume(returning: nil)
                return
            }
            rebuildWaiters[widget, default: []].append(
                RebuildWaiter(after: after, continuation: continuation))
            handle(.interacted(widget, at: cursor))
        }
        guard let timeline else {
            throw WidgetFailure(description: "the timeline could not be built")
        }
        return MirroredTimeline(timeline: timeline, failure: failure)
    }

    /// Resumes the callers waiting for a build that began at `start`; `timeline` is `nil` if it
    /// failed.
    func resumeWaiters(_ widget: WidgetInfo, begunAt start: Duration, _ timeline: TimelineArchive?)
    {
        guard let waiters = rebuildWaiters.removeValue(forKey: widget) else { return }
        let early = waiters.filter { $0.after > start }
        if !early.isEmpty { rebuildWaiters[widget] = early }
        for waiter in waiters where waiter.after <= start {
            waiter.continuation.resume(returning: timeline)
        }
    }

    /// Resumes the callers waiting for widgets that are no longer placed: these will not be built.
    func dropWaiters(except placed: Set<WidgetInfo>) {
        for (widget, waiters) in rebuildWaiters where !placed.contains(widget) {
            rebuildWaiters[widget] = nil
            for waiter in waiters { waiter.continuation.resume(returning: nil) }
        }
    }
}
