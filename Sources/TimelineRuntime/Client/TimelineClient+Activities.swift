import Foundation
import Synchronization
import WidgetModel
import WidgetViews

/// The Live Activities that the extension keeps. Apps start and change them by ``Activity``.
extension TimelineClient {
    /// Returns a presentation of each Live Activity that is shown at a date, those with the highest
    /// relevance score first. They are shown, used and opened as widgets are, in the environment
    /// ``WidgetContextRules/environment(of:on:state:)``.
    public nonisolated func activities(
        in presentation: ActivityPresentation, at date: Date = .now
    ) -> [WidgetInfo] {
        activities.list.filter { $0.phase(at: date) != .dismissed }.enumerated()
            .sorted {
                ($1.element.relevanceScore, $0.offset) < ($0.element.relevanceScore, $1.offset)
            }
            .map { $0.element.widget(in: presentation) }
    }

    /// The placed widgets, and the presentations of the Live Activities: all that has a timeline.
    var archived: Set<WidgetInfo> {
        Set(widgets + activities.list.flatMap { ActivityPresentation.allCases.map($0.widget(in:)) })
    }

    /// Stores the system's push token of a Live Activity, which is registered with it. Extensions
    /// that share a client register no such tokens: none of them could keep those of another.
    public func set(pushToken: Data?, ofActivity id: String) {
        var kept = activities
        guard let index = kept.list.firstIndex(where: { $0.id == id }) else { return }
        kept.list[index].token = pushToken?.base64EncodedString()
        keep(kept)
    }

    /// Stores the system's token for pushes that start activities of a declared type, likewise.
    public func set(pushToStartToken token: Data?, ofType type: String) {
        var kept = activities
        kept.startTokens[type] = token?.base64EncodedString()
        keep(kept)
    }

    /// Updates, ends or starts an activity as its app wants; one that has ended stays as it is.
    /// Returns whether this client keeps the activity: an updated one may be gone, or another
    /// client's. Throws when the activity cannot be drawn, or there are too many.
    @discardableResult
    func apply(_ wanted: KeptActivity, starts: Bool) throws -> Bool {
        guard isRunning else { throw WidgetFailure(description: "the extension does not run") }
        var (activity, kept) = (wanted, activities)
        if let known = kept[wanted.id] {
            guard known.isRunning(at: .now) else { return true }
            activity = known
            activity.update(from: wanted)
        } else if !starts {
            return false
        }
        let drawings = try declared.drawings(of: activity, on: configuration.device)
        try kept.put(activity)
        keep(kept, drawings)
        return true
    }

    /// Keeps these activities, without those that are no longer shown, and what was drawn of them;
    /// and registers them.
    private func keep(_ changed: KeptActivities, _ drawings: [TimelineArchive] = []) {
        var kept = changed
        kept.list.removeAll { $0.phase(at: .now) == .dismissed }
        kept.startTokens = kept.startTokens.filter { declared.activities[$0.key] != nil }
        activityStore.withLock { $0 = kept }
        for drawing in drawings {
            timelines[drawing.widget] = drawing
            interactions.rebuilt(drawing.widget, begunAt: now, node: drawing.anyNode(at: .now))
        }
        let shown = archived
        timelines = timelines.filter { shown.contains($0.key) }
        let wanted = registration(recommendations: [])
        if engine?.desired.activities != wanted.activities
            || engine?.desired.activityStarts != wanted.activityStarts
        {
            handle(.configurationChanged(wanted))
        }
        guard let archive, archiveLock != nil else { return }
        do throws(ClientArchive.Failure) {
            for drawing in drawings { try archive.save(timeline: drawing) }
            try archive.save(kept)
        } catch {
            tell(.archiveFailed(error))
        }
        archive.keep(only: shown)
    }

    /// Reads the archived activities and draws them anew: this version of the app may show them
    /// otherwise, and the intents of their buttons become known. Those that it cannot show end.
    func resumeActivities() {
        guard let archive, activities.list.isEmpty else { return }
        var (kept, drawings) = (archive.activities, [TimelineArchive]())
        // The system may have told tokens before the run began.
        kept.startTokens.merge(activities.startTokens) { $1 }
        guard kept != KeptActivities() else { return }
        kept.list.removeAll { activity in
            let drawn = try? declared.drawings(of: activity, on: configuration.device)
            drawings += drawn ?? []
            return drawn == nil
        }
        keep(kept, drawings)
    }

    /// Asks the content source of an activity for its content now. What the app sets meanwhile may
    /// be newer than the answer, or older: the source is then asked again.
    func refreshActivity(_ item: WidgetInfo) async {
        do {
            for ask in 1... {
                guard let known = item.activityID.flatMap({ activities[$0] }),
                    known.isRunning(at: .now),
                    let source = declared.activities[known.type]?.source
                else {
                    // Nothing tells of an end that comes with time.
                    keep(activities)
                    break
                }
                guard ask <= 3 else {
                    throw WidgetFailure(description: "the app changes it all the time")
                }
                let wanted = try await Deadline.run(configuration.buildDeadline) {
                    try await source(known)
                }
                guard activities[known.id]?.revision == known.revision else { continue }
                if let wanted { try apply(wanted, starts: false) }
                break
            }
            handle(.rebuilt(item, milliseconds: 0, reloadDate: nil))
        } catch {
            let reason = Self.reason(of: error)
            tell(.buildFailed(item, reason: reason))
            handle(.buildFailed(item, reason: reason))
        }
    }
}
