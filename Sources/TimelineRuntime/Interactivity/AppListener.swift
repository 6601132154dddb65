import Foundation
import WidgetModel
import WidgetViews

/// The app's end of an ``AppConnection``: performs intents in the app's process and continues at
/// tapped content, and lets ``WidgetCenter/shared`` reach the extension, for as long as it exists.
public final class AppListener: Sendable {
    private let archive: ClientArchive
    private let lock: ArchiveLock
    private let server: LocalServer

    /// Listens in the archive of an extension, and records that the app was launched. From then on
    /// ``WidgetCenter/shared``, and with it ``Activity``, reach the extension.
    ///
    /// - Parameters:
    ///   - intents: Declares the intents of ``IntentProcess/app``, and the widgets whose
    ///     configuration the app reads.
    ///   - open: Brings the app to the foreground and continues at the activity.
    /// - Throws: ``ClientArchive/Failure``, also while another process listens; or
    ///   ``ProcessUnreachable`` when the socket cannot be created.
    public init(
        archive: ClientArchive, intents: WidgetDeclarations,
        open: @escaping @Sendable (WidgetActivity) async throws -> Void
    ) throws {
        self.archive = archive
        lock = try archive.lock("app")
        try archive.recordLaunch()
        let center = WidgetCenter(archives: [archive])
        server = try LocalServer(path: archive.appSocket) { request in
            if let call = request["call"].flatMap({ IntentCall($0) }) {
                try await WidgetCenter.$current.withValue(center) {
                    try await intents.perform(call)
                }
            } else if let widget = request["widget"]?.objectValue
                .flatMap({ WidgetInfo(archived: $0) })
            {
                let url = request["url"]?.stringValue.flatMap { URL(string: $0) }
                try await open(WidgetActivity(widget: intents.resolved(widget), url: url))
            } else {
                throw ProcessRefusal(description: "the app knows no such request")
            }
            return .null
        }
        WidgetCenter.share(archive, true)
    }

    deinit {
        server.end()
        WidgetCenter.share(archive, false)
    }
}

/// A connection from a widget extension to the running app, over a socket in its archive.
public struct AppConnection: AppProcess {
    private let path: String

    /// Creates a connection to the app that listens in this archive.
    public init(archive: ClientArchive) { path = archive.appSocket }

    /// Performs an intent in the app, which knows itself whether the intent opens it.
    ///
    /// - Throws: ``ProcessUnreachable`` when the app does not run; or ``ProcessRefusal`` with the
    ///   message of the intent's error.
    public func perform(_ call: IntentCall, inForeground: Bool) async throws {
        try await send(["call": call.json])
    }

    /// Lets the app continue at the tapped content.
    ///
    /// - Throws: ``ProcessUnreachable`` when the app does not run; or ``ProcessRefusal``.
    public func open(_ activity: WidgetActivity) async throws {
        try await send([
            "widget": .object(activity.widget.archived),
            "url": activity.url.map { .string($0.absoluteString) } ?? .null,
        ])
    }

    private func send(_ request: JSONObject) async throws {
        _ = try await LocalSocket.request(request, at: path)
    }
}
