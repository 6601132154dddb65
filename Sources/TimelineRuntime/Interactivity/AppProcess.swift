import Foundation
import WidgetViews

/// The way from a client, in the process of a widget extension, to the app: performs the intents of
/// ``IntentProcess/app``, and opens the app when a person taps a widget.
///
/// The host implements it with its own inter-process communication and passes it to its
/// ``TimelineClient``. Where the app and its extension are one process, it calls
/// ``WidgetDeclarations/perform(_:)``. On Apple's systems App Intents does all of this.
public protocol AppProcess: Sendable {
    /// Performs an intent in the app's process, which is started if necessary. Returns when its
    /// `perform()` has returned: the widget's timeline is built then, and reads the data that the
    /// intent changed (article "Adding interactivity to widgets and Live Activities", "Implement
    /// the perform function").
    ///
    /// - Parameters:
    ///   - call: For the app's ``WidgetDeclarations/perform(_:)``; see ``IntentCall/json``.
    ///   - inForeground: Whether the app opens first, see ``AppIntent/openAppWhenRun``.
    /// - Throws: The error of the intent, or the reason why it was not performed. A toggle shows
    ///   the `errorDescription` of a `LocalizedError`.
    func perform(_ call: IntentCall, inForeground: Bool) async throws

    /// Brings the app to the foreground to continue at the tapped content. An app in another
    /// process passes the widget to ``WidgetDeclarations/resolved(_:)`` before it reads the
    /// configuration, as ``AppListener`` does: an intent does not pass between processes.
    ///
    /// - Throws: The reason why it was not opened.
    func open(_ activity: WidgetActivity) async throws
}

/// The data that an app receives when a person taps a widget; `NSUserActivity` on Apple's systems
/// (articles "Creating a widget extension", "Respond to user interactions", and "Making a
/// configurable widget", "Access customized values in your app").
public struct WidgetActivity: Sendable, Hashable {
    /// The tapped widget with its configuration.
    public var widget: WidgetInfo
    /// The destination of the tapped link, or else the widget's `widgetURL`; `nil` if there is
    /// neither.
    public var url: URL?

    /// Creates an activity.
    public init(widget: WidgetInfo, url: URL?) {
        self.widget = widget
        self.url = url
    }

    /// Returns the configuration as an intent of the given type; `nil` when the intent cannot be
    /// created, or its entities were not found beforehand: see ``AppProcess/open(_:)``.
    public func widgetConfigurationIntent<Intent: WidgetConfigurationIntent>(
        of type: Intent.Type
    ) -> Intent? {
        widget.widgetConfigurationIntent(of: type)
    }
}
