import Foundation
import WidgetModel
import WidgetViews

/// The requests that a running extension answers over its socket, by the member `do`.
package enum ExtensionRequest: String, Sendable {
    /// The requests of a ``WidgetCenter``, where they name one for a `kind`.
    case reload, invalidateRecommendations, invalidateRelevance, placedWidgets
    /// The app's `activity` now, and what `changed` in the system.
    case device
    /// The use of a `widget`: of a control by its `call`, or elsewhere, such as at a `link`; or of
    /// a placed control, by its `id`.
    case tap, open, useControl
    /// The widgets that people can add at a `location`, the cards of the Smart Stack, and the
    /// controls.
    case gallery, smartStack, controls
    /// The timelines that a Mac may show, and the use of a control there.
    case mirror, mirroredTap
    /// A Live Activity as its app wants it: new, with another content, or ended.
    case activity
}

/// A connection to a running widget extension from another process of the same person: the app, a
/// program that shows widgets, or a Mac that mirrors them. It reaches a client whose configuration
/// sets ``TimelineClientConfiguration/acceptsRequests``, as ``WidgetExtensionProgram`` does.
public struct ExtensionConnection: Sendable {
    private let archive: ClientArchive

    /// Creates a connection to the extension that writes this archive.
    public init(archive: ClientArchive) { self.archive = archive }

    /// Handles a tap on a button or toggle of a placed widget; returns after its intent. See
    /// ``TimelineClient/interact(with:of:in:)``.
    ///
    /// - Returns: What the widget shows until its new timeline is there.
    /// - Throws: ``InteractionRefusal`` where the environment refuses it; ``ProcessUnreachable``;
    ///   or ``ProcessRefusal`` with the extension's reason.
    @discardableResult
    public func interact(
        with call: IntentCall, of widget: WidgetInfo, in environment: WidgetEnvironment
    ) async throws -> ShownWidget? {
        if let refusal = environment.interactionRefusal { throw refusal }
        var members = Self.members(widget, environment)
        members["call"] = call.json
        let shown = try await ask(.tap, members).objectValue
        return shown?["content"].flatMap { WidgetNode($0) }.map {
            ShownWidget(node: $0, isUpdating: shown?["isUpdating"]?.boolValue ?? false)
        }
    }

    /// Performs the intent of a placed control; returns after it. See
    /// ``TimelineClient/useControl(_:)``.
    ///
    /// - Throws: ``ProcessUnreachable``, or ``ProcessRefusal`` with the extension's reason.
    public func useControl(_ id: String) async throws {
        _ = try await ask(.useControl, ["id": .string(id)])
    }

    /// Handles a tap on a placed widget outside its buttons and toggles: opens the app. See
    /// ``TimelineClient/open(_:at:in:)``.
    ///
    /// - Throws: ``ProcessUnreachable``, or ``ProcessRefusal`` with the extension's reason.
    public func open(
        _ widget: WidgetInfo, at link: URL? = nil, in environment: WidgetEnvironment
    ) async throws {
        var members = Self.members(widget, environment)
        members["link"] = link.map { .string($0.absoluteString) }
        _ = try await ask(.open, members)
    }

    /// Rebuilds the timelines of every widget of one kind, or of every widget. Returns when the
    /// extension has accepted the request; it reloads within the budget.
    ///
    /// - Throws: ``ProcessUnreachable``, or ``ProcessRefusal`` with the extension's reason.
    public func reloadTimelines(ofKind kind: String? = nil) async throws {
        var members = JSONObject()
        members["kind"] = kind.map { .string($0) }
        _ = try await ask(.reload, members)
    }

    /// Reports the app's activity, which holds until the next report, and a change in the system;
    /// `nil` where there is nothing new. See ``TimelineClient/set(activity:)`` and
    /// ``TimelineClient/systemChanged(_:)``.
    ///
    /// - Throws: ``ProcessUnreachable``, or ``ProcessRefusal`` with the extension's reason.
    public func set(
        activity: AppActivity? = nil, changed: ReloadReason.SystemChange? = nil
    ) async throws {
        var members = JSONObject()
        members["activity"] = activity.map { .integer(Int64($0.rawValue)) }
        members["changed"] = changed.map { .string($0.rawValue) }
        _ = try await ask(.device, members)
    }

    package func ask(
        _ request: ExtensionRequest, _ members: JSONObject = JSONObject()
    ) async throws -> JSONValue {
        var members = members
        members["do"] = .string(request.rawValue)
        return try await LocalSocket.request(members, at: archive.extensionSocket)
    }

    private static func members(
        _ widget: WidgetInfo, _ environment: WidgetEnvironment
    ) -> JSONObject {
        [
            "widget": .object(widget.archived),
            "location": .string(environment.location.rawValue),
            "mode": .string(environment.widgetRenderingMode.rawValue),
            "scheme": .string(environment.colorScheme.rawValue),
            "alwaysOn": .bool(environment.isLuminanceReduced),
            "far": .bool(environment.levelOfDetail == .simplified),
        ]
    }
}

extension ExtensionConnection: WidgetCenterTarget {
    func reload(_ request: ReloadRequest) {
        let kind: String? =
            switch request {
            case .all: nil
            case .kind(let kind): kind
            case .timeline(let widget): widget.kind
            }
        Task { try? await reloadTimelines(ofKind: kind) }
    }

    func invalidateRecommendations() { Task { try? await ask(.invalidateRecommendations) } }

    func invalidateRelevance(ofKind kind: String) async {
        _ = try? await ask(.invalidateRelevance, ["kind": .string(kind)])
    }

    var placedWidgets: [WidgetInfo] {
        get async throws {
            try await (ask(.placedWidgets).arrayValue ?? []).compactMap {
                $0.objectValue.flatMap { WidgetInfo(archived: $0) }
            }
        }
    }

    /// The token is the system's: each process gets it there.
    var currentPushInfo: WidgetPushInfo? { nil }

    var activities: KeptActivities { archive.activities }
}

extension ExtensionConnection: MirroredWidgetHost {
    /// The timelines that a Mac may show.
    public var mirroredTimelines: [TimelineArchive] {
        get async throws {
            try await (ask(.mirror).arrayValue ?? []).map { try TimelineArchive(document: $0) }
        }
    }

    /// Performs an intent on the iPhone; returns the timeline that it then built.
    public func perform(
        _ call: IntentCall, ofMirrored widget: WidgetInfo
    ) async throws -> MirroredTimeline {
        let answer = try await ask(
            .mirroredTap, ["widget": .object(widget.archived), "call": call.json]
        ).objectValue
        return MirroredTimeline(
            timeline: try TimelineArchive(document: answer?["timeline"] ?? .null),
            failure: answer?["failure"]?.stringValue)
    }
}
