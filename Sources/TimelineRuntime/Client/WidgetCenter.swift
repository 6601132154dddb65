import Synchronization
import WidgetModel
import WidgetViews

/// Reloads the widgets that an app itself knows to be stale.
///
/// As in WidgetKit, reload requests return at once and promise no time. They are carried out while
/// the client runs. Requests made while it does not run are dropped, because it rebuilds stale
/// timelines when it starts.
public struct WidgetCenter: Sendable {
    /// The client of this process, or the extensions in other processes.
    let targets: [any WidgetCenterTarget]

    private struct Shared: Sendable {
        weak var client: TimelineClient?
        var archives: [String: ClientArchive] = [:]
    }
    private static let known = Mutex(Shared())
    /// The center that is shared for the time of a task, in place of the process's.
    @TaskLocal static var current: WidgetCenter?

    /// The center of the process's client; of several clients, the one that began to run last. In
    /// an app without a client, the center of the extensions whose archives an ``AppListener``
    /// serves. With neither, requests are dropped.
    public static var shared: WidgetCenter {
        if let current { return current }
        return known.withLock { known in
            known.client.map { WidgetCenter(client: $0) }
                ?? WidgetCenter(archives: Array(known.archives.values))
        }
    }

    static func share(_ client: TimelineClient) { known.withLock { $0.client = client } }

    /// Adds an archive whose extension is asked, or takes it away.
    static func share(_ archive: ClientArchive, _ isServed: Bool) {
        known.withLock { $0.archives[archive.directory] = isServed ? archive : nil }
    }

    init(client: TimelineClient) { targets = [client] }

    /// Creates a center for an app whose extensions run in other processes, each with one of these
    /// archives.
    public init(archives: [ClientArchive]) {
        targets = archives.map { ExtensionConnection(archive: $0) }
    }

    /// Rebuilds the timelines of every widget of one kind.
    public func reloadTimelines(ofKind kind: String) {
        for target in targets { target.reload(.kind(kind)) }
    }

    /// Rebuilds the timelines of every widget.
    public func reloadAllTimelines() {
        for target in targets { target.reload(.all) }
    }

    /// Asks every provider for its recommendations again, and registers those that changed.
    public func invalidateConfigurationRecommendations() {
        for target in targets { target.invalidateRecommendations() }
    }

    /// Marks the relevance of a kind as stale. The client asks its provider for it again soon, and
    /// reports the event to its observer.
    public func invalidateRelevance(ofKind kind: String) {
        for target in targets { Task { await target.invalidateRelevance(ofKind: kind) } }
    }

    /// Calls `completion` with the result of ``currentConfigurations()``.
    public func getCurrentConfigurations(
        _ completion: @escaping @Sendable (Result<[WidgetInfo], any Error>) -> Void
    ) {
        Task {
            do {
                completion(.success(try await currentConfigurations()))
            } catch {
                completion(.failure(error))
            }
        }
    }

    /// The token for pushes to the app's widgets on this device; `nil` while there is none.
    public var currentPushInfo: WidgetPushInfo? {
        get async {
            for target in targets {
                if let pushInfo = await target.currentPushInfo { return pushInfo }
            }
            return nil
        }
    }

    /// The placed widgets. Widgets with equal configuration appear once for each time they are
    /// placed, because nothing tells them apart. Those of this process have their configuration
    /// intent.
    ///
    /// - Throws: ``ProcessUnreachable`` when an extension in another process does not run.
    public func currentConfigurations() async throws -> [WidgetInfo] {
        var widgets: [WidgetInfo] = []
        for target in targets {
            for widget in try await target.placedWidgets {
                widgets.append(await target.resolved(widget))
            }
        }
        return widgets
    }
}

/// A client that a ``WidgetCenter`` asks: in this process, or in another one.
protocol WidgetCenterTarget: Sendable {
    var placedWidgets: [WidgetInfo] { get async throws }
    var currentPushInfo: WidgetPushInfo? { get async }

    /// Returns a widget with its configuration intent, where its declaration is known.
    func resolved(_ widget: WidgetInfo) async -> WidgetInfo
    func reload(_ request: ReloadRequest)
    func invalidateRecommendations()
    func invalidateRelevance(ofKind kind: String) async

    var activities: KeptActivities { get }
    func ask(_ request: ExtensionRequest, _ members: JSONObject) async throws -> JSONValue
}

extension WidgetCenterTarget {
    func resolved(_ widget: WidgetInfo) async -> WidgetInfo { widget }
}

extension TimelineClient: WidgetCenterTarget {
    nonisolated func resolved(_ widget: WidgetInfo) async -> WidgetInfo {
        await declared.resolved(widget)
    }

    nonisolated func reload(_ request: ReloadRequest) {
        Task { await handle(.reloadRequested(request, .app)) }
    }

    nonisolated func invalidateRecommendations() {
        Task { await handle(.recommendationsInvalidated) }
    }

    nonisolated var activities: KeptActivities { activityStore.withLock { $0 } }
}
