import Foundation
import WidgetViews

/// The iPhone that builds the widgets a Mac shows. Their code runs only there.
public protocol MirroredWidgetHost: Sendable {
    /// The timelines of the placed widgets that a Mac may show.
    var mirroredTimelines: [TimelineArchive] { get async throws }

    /// Performs the intent of a button or toggle that the widget shows, and builds its timeline.
    ///
    /// - Throws: The reason why the intent was not performed, or the timeline not built.
    func perform(
        _ call: IntentCall, ofMirrored widget: WidgetInfo
    ) async throws -> MirroredTimeline
}

/// The result of an interaction for a Mac.
public struct MirroredTimeline: Sendable, Equatable {
    /// The timeline that was built after the intent returned.
    public var timeline: TimelineArchive
    /// The reason why the intent failed, for display; `nil` on success.
    public var failure: String?

    /// Creates a result.
    public init(timeline: TimelineArchive, failure: String? = nil) {
        self.timeline = timeline
        self.failure = failure
    }
}

/// The iPhone widgets that a Mac shows (article "Adding interactivity to widgets and Live
/// Activities", "Review interactions in iPhone widgets on Mac"): timelines come from the iPhone,
/// and interactions are sent to it. While an interaction is pending, toggles show the expected
/// state, and content marked as invalidatable looks pending.
public actor MirroredWidgets {
    private let host: any MirroredWidgetHost
    private let origin = ContinuousClock.now
    private var timelines: [WidgetInfo: TimelineArchive] = [:]
    private var interactions: PendingInteractions
    private var timer: Task<Void, Never>?

    /// Creates an instance that has received no widgets yet.
    ///
    /// - Parameter timeout: The time after a tap at which a toggle reverts if the iPhone has not
    ///   answered.
    public init(host: any MirroredWidgetHost, timeout: Duration = .seconds(30)) {
        self.host = host
        interactions = PendingInteractions(timeout: timeout)
    }

    /// Replaces the widgets by those of the iPhone.
    ///
    /// - Throws: The reason why the iPhone does not answer; the widgets received before remain.
    public func update() async throws {
        let start = now
        let received = try await host.mirroredTimelines
        timelines = [:]
        for timeline in received { receive(timeline, begunAt: start) }
    }

    /// Stores a timeline that the iPhone built.
    public func receive(_ timeline: TimelineArchive) { receive(timeline, begunAt: now) }

    private func receive(_ timeline: TimelineArchive, begunAt start: Duration) {
        timelines[timeline.widget] = timeline
        interactions.rebuilt(
            timeline.widget, begunAt: start, node: timeline.anyNode(at: .now))
    }

    /// Returns the content of a widget at `date`; `nil` before its first timeline has arrived, and
    /// for a context without a drawing.
    public func shown(
        _ widget: WidgetInfo, at date: Date = .now, in environment: WidgetEnvironment
    ) -> ShownWidget? {
        timelines[widget]?.node(at: date, in: environment).map { node in
            ShownWidget(
                node: interactions.applied(to: node, of: widget),
                isUpdating: interactions.isUpdating(widget))
        }
    }

    /// Handles a tap on a button or toggle: the iPhone performs its intent. Returns when it has
    /// answered.
    ///
    /// - Throws: The reason why the tap is refused.
    public func interact(
        with call: IntentCall, of widget: WidgetInfo, in environment: WidgetEnvironment
    ) async throws(InteractionRefusal) {
        guard let node = timelines[widget]?.node(at: .now, in: environment) else {
            throw environment.interactionRefusal ?? .notShown
        }
        var steps = try interactions.tap(
            call, of: widget, showing: node, in: environment, now: now)[...]
        watch()
        while let step = steps.popFirst() {
            // The iPhone reloads the timeline without being asked.
            guard step == .perform else { continue }
            var answer: MirroredTimeline?
            var failure: String?
            do {
                answer = try await host.perform(call, ofMirrored: widget)
                failure = answer?.failure
            } catch {
                failure =
                    (error as? InteractionRefusal)?.description
                    ?? (error as? WidgetFailure)?.description
                    ?? (error as? ProcessRefusal)?.description ?? "iPhone cannot be reached"
            }
            steps += interactions.performed(call, of: widget, failure: failure, now: now)
            if let answer { receive(answer.timeline) }
            watch()
        }
    }

    private var now: Duration { origin.duration(to: .now) }

    private func watch() {
        timer?.cancel()
        guard let deadline = interactions.deadline else { return }
        timer = Task {
            try? await Task.sleep(for: max(.zero, deadline - self.now))
            guard !Task.isCancelled else { return }
            _ = self.interactions.woke(now: self.now)
            self.watch()
        }
    }
}
