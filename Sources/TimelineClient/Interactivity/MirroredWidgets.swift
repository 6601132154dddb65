import Foundation
import WidgetModel

/// The iPhone that builds the widgets a Mac shows: the one place where their code runs.
public protocol MirroredWidgetHost: Sendable {
    /// Performs the intent of a button or toggle that the widget shows, and has its timeline built.
    ///
    /// - Throws: Why nothing was performed, or no timeline built.
    func perform(
        _ call: IntentCall, ofMirrored widget: WidgetInfo
    ) async throws -> MirroredTimeline
}

/// What a Mac gets for an interaction.
public struct MirroredTimeline: Sendable, Equatable {
    /// The timeline that was built when the intent had returned.
    public var timeline: TimelineArchive
    /// Why the intent had no success, for people; `nil` when it had.
    public var failure: String?

    /// A timeline.
    public init(timeline: TimelineArchive, failure: String? = nil) {
        self.timeline = timeline
        self.failure = failure
    }
}

/// The iPhone widgets that a Mac shows (article "Adding interactivity to widgets and Live
/// Activities", "Review interactions in iPhone widgets on Mac"): timelines come from the iPhone,
/// interactions go to it. What takes that long is shown: toggles at the state that people expect, and
/// what is marked as invalidatable as waiting.
public actor MirroredWidgets {
    private let host: any MirroredWidgetHost
    private let origin = ContinuousClock.now
    private var timelines: [WidgetInfo: TimelineArchive] = [:]
    private var interactions: WidgetInteractions
    private var timer: Task<Void, Never>?

    /// Widgets of which none has come yet.
    ///
    /// - Parameter timeout: From a tap until a toggle of which the iPhone said nothing shows its old
    ///   state again.
    public init(host: any MirroredWidgetHost, timeout: Duration = .seconds(30)) {
        self.host = host
        interactions = WidgetInteractions(timeout: timeout)
    }

    /// Takes a timeline that the iPhone built.
    public func receive(_ timeline: TimelineArchive) {
        timelines[timeline.widget] = timeline
        interactions.rebuilt(
            timeline.widget, begunAt: now, node: timeline.anyNode(at: .now))
    }

    /// What is shown of a widget at `date`; `nil` while nothing has come, and for a context that
    /// nothing was drawn for.
    public func shown(
        _ widget: WidgetInfo, at date: Date = .now, in environment: WidgetEnvironment
    ) -> ShownWidget? {
        timelines[widget]?.node(at: date, in: environment).map { node in
            ShownWidget(
                node: interactions.applied(to: node, of: widget),
                isUpdating: interactions.isUpdating(widget))
        }
    }

    /// A person uses a button or toggle: the iPhone performs its intent. Returns when its answer is
    /// here.
    ///
    /// - Throws: Why nothing happens.
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
            // The iPhone reloads by itself.
            guard step == .perform else { continue }
            var answer: MirroredTimeline?
            var failure: String?
            do {
                answer = try await host.perform(call, ofMirrored: widget)
                failure = answer?.failure
            } catch {
                failure = (error as? InteractionRefusal)?.description ?? "iPhone cannot be reached"
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
            if !Task.isCancelled { self.woke() }
        }
    }

    private func woke() {
        _ = interactions.woke(now: now)
        watch()
    }
}
