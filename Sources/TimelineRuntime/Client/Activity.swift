import Foundation
import Synchronization
import TimelineGatewayClient
import WidgetModel
import WidgetViews

/// Whether the app can start Live Activities: whether ``WidgetCenter/shared`` reaches an extension.
public struct ActivityAuthorizationInfo: Sendable {
    /// Creates a value that finds it out whenever it is asked.
    public init() {}
    /// Whether the app can start activities.
    public var areActivitiesEnabled: Bool { !WidgetCenter.shared.targets.isEmpty }
}

/// A Live Activity: starts, updates and ends it.
///
/// An ``ActivityConfiguration`` in the extension draws its views. A client of
/// ``WidgetCenter/shared``, in this process or in another one, keeps it.
public final class Activity<Attributes: ActivityAttributes>: Identifiable, Sendable {
    /// The type of the content that changes.
    public typealias ContentState = Attributes.ContentState

    /// The id of the activity.
    public let id: String
    /// The values that stay the same.
    public let attributes: Attributes
    /// The extensions; one of them keeps the activity.
    private let targets: [any WidgetCenterTarget]
    /// The content when this value was made.
    private let first: ActivityContent<ContentState>
    /// The start, until the extension has accepted or refused it.
    private let starting = Mutex<Task<Void, Never>?>(nil)

    private init?(_ kept: KeptActivity, at targets: [any WidgetCenterTarget]) {
        guard kept.type == "\(Attributes.self)", kept.phase(at: .now) != .dismissed,
            let attributes = try? kept.attributes.decoded(as: Attributes.self),
            let content = Activity.content(of: kept)
        else { return nil }
        (id, self.attributes, first, self.targets) = (kept.id, attributes, content, targets)
    }

    /// Starts an activity. The extension draws it soon. If the extension does not run within ten
    /// seconds, or declares no such activity, the state becomes ``ActivityState/dismissed``.
    ///
    /// - Parameter pushType: How it is updated from outside the app, as is registered with the
    ///   gateway; `nil` if only the app updates it.
    /// - Throws: ``ActivityAuthorizationError``, or the error of an encoder.
    public static func request(
        attributes: Attributes, content: ActivityContent<ContentState>, pushType: PushType? = nil
    ) throws -> Activity<Attributes> {
        let targets = WidgetCenter.shared.targets
        let kept = try KeptActivity(attributes, content, pushType)
        var all = KeptActivities(list: targets.flatMap { $0.activities.list })
        try all.put(kept)
        guard !targets.isEmpty, let activity = Activity(kept, at: targets) else {
            throw ActivityAuthorizationError.unsupported
        }
        // The start waits for the lock, so that it never ends before it is stored.
        activity.starting.withLock { start in
            start = Task {
                await activity.send(kept, starts: true)
                activity.starting.withLock { $0 = nil }
            }
        }
        return activity
    }

    /// Replaces the content. Has no effect once the activity has ended, or with a content that is
    /// too large.
    public func update(
        _ content: ActivityContent<ContentState>, alertConfiguration: AlertConfiguration? = nil
    ) async {
        await change { try $0.setContent(content) }
    }

    /// Ends the activity with a last content; `nil` for the one that it has.
    public func end(
        _ content: ActivityContent<ContentState>?,
        dismissalPolicy: ActivityUIDismissalPolicy = .default
    ) async {
        await change { kept in
            if let content { try kept.setContent(content) }
            kept.end(dismissalPolicy)
        }
    }

    private func change(_ body: (inout KeptActivity) throws -> Void) async {
        await starting.withLock { $0 }?.value
        guard var kept, (try? body(&kept)) != nil else { return }
        await send(kept)
    }

    /// Asks one extension after the other, until one of them keeps the activity. One that does not
    /// run is asked again twice a second, 20 times: it may be restarting.
    private func send(_ kept: KeptActivity, starts: Bool = false) async {
        guard let json = try? JSONValue(encoding: kept) else { return }
        let request: JSONObject = ["activity": json, "starts": .bool(starts)]
        for _ in 0...20 {
            var isAway = false
            for target in targets {
                do {
                    if try await target.ask(.activity, request).boolValue == true { return }
                } catch {
                    isAway = isAway || error is ProcessUnreachable
                }
            }
            guard isAway, (try? await Task.sleep(for: .milliseconds(500))) != nil else { return }
        }
    }

    private var kept: KeptActivity? { targets.lazy.compactMap { $0.activities[self.id] }.first }

    /// The content that is shown; after dismissal, the content that this value was created with.
    public var content: ActivityContent<ContentState> {
        kept.flatMap(Self.content(of:)) ?? first
    }

    /// The state of the activity.
    public var activityState: ActivityState {
        let isStarting = starting.withLock { $0 != nil }
        return kept?.phase(at: .now) ?? (isStarting ? .active : .dismissed)
    }

    /// The system's token for pushes to the activity; `nil` while there is none.
    public var pushToken: Data? { kept?.token.flatMap { Data(base64Encoded: $0) } }

    /// The app's activities that are shown.
    public static var activities: [Activity<Attributes>] {
        let targets = WidgetCenter.shared.targets
        return targets.flatMap { $0.activities.list }.compactMap { Activity($0, at: targets) }
    }

    /// The system's token for pushes that start an activity; `nil` while there is none.
    public static var pushToStartToken: Data? {
        WidgetCenter.shared.targets.lazy
            .compactMap { $0.activities.startTokens["\(Attributes.self)"] }.first
            .flatMap { Data(base64Encoded: $0) }
    }

    private static func content(of kept: KeptActivity) -> ActivityContent<ContentState>? {
        (try? kept.content.decoded(as: ContentState.self)).map {
            ActivityContent(
                state: $0, staleDate: kept.staleDate, relevanceScore: kept.relevanceScore)
        }
    }

    /// The states, from that of now to the last.
    public var activityStateUpdates: AsyncStream<ActivityState> { updates { $0.activityState } }

    /// The contents, from that of now on.
    public var contentUpdates: AsyncStream<ActivityContent<ContentState>> {
        updates { $0.kept.flatMap(Self.content(of:)) }
    }

    /// The push tokens, from that of now on.
    public var pushTokenUpdates: AsyncStream<Data> { updates { $0.pushToken } }

    /// The push-to-start tokens, from that of now on.
    public static var pushToStartTokenUpdates: AsyncStream<Data> {
        changes { last in
            let token = pushToStartToken
            return (token == last ? [] : [token].compactMap(\.self), false)
        }
    }

    /// The activities that are shown, and those that are started later.
    public static var activityUpdates: AsyncStream<Activity<Attributes>> {
        let seen = Mutex<Set<String>>([])
        return changes { _ in
            let shown = activities
            let new = seen.withLock { seen in shown.filter { seen.insert($0.id).inserted } }
            return (new, false)
        }
    }

    /// Returns the values that differ from the one before, until the activity is dismissed.
    private func updates<Value: Equatable & Sendable>(
        _ read: @escaping @Sendable (Activity<Attributes>) -> Value?
    ) -> AsyncStream<Value> {
        Self.changes { last in
            let isLast = self.activityState == .dismissed
            guard let value = read(self), value != last else { return ([], isLast) }
            return ([value], isLast)
        }
    }

    /// Returns what a function finds, until it is the last. It is called twice a second: nothing
    /// tells of changes in another process, or of those that come with time.
    private static func changes<Value: Sendable>(
        _ find: @escaping @Sendable (_ last: Value?) -> ([Value], Bool)
    ) -> AsyncStream<Value> {
        AsyncStream { continuation in
            let task = Task {
                var last: Value?
                var isOver = false
                while !isOver, !Task.isCancelled {
                    let (found, isLast) = find(last)
                    for value in found { continuation.yield(value) }
                    (last, isOver) = (found.last ?? last, isLast)
                    if !isOver { try? await Task.sleep(for: .milliseconds(500)) }
                }
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }
}
