import Foundation
import WidgetModel

/// A connection from a client, whose own process is that of the widget extension, to the app. It
/// performs the intents of ``IntentProcess/app``, and opens the app when a person taps a widget.
///
/// The host implements it with its own inter-process communication and passes it to its
/// ``TimelineClient/TimelineClient``. Where the app and its extension are one process, it calls
/// ``WidgetRuntime/perform(_:)``. On Apple's systems App Intents does all of this.
public protocol AppProcess: Sendable {
    /// Performs an intent in the app's process, which is started if necessary. Returns when its
    /// `perform()` has returned: the widget's timeline is built then, and reads the data that the
    /// intent changed (article "Adding interactivity to widgets and Live Activities", "Implement
    /// the perform function").
    ///
    /// - Parameters:
    ///   - call: The call to perform with the app's ``WidgetRuntime/perform(_:)``; see
    ///     ``IntentCall/json``.
    ///   - inForeground: Whether the app comes to the foreground first, as the intent's
    ///     ``AppIntent/openAppWhenRun`` requires.
    /// - Throws: The error of the intent, or the reason why it was not performed. A toggle shows
    ///   the `errorDescription` of a `LocalizedError`.
    func perform(_ call: IntentCall, inForeground: Bool) async throws

    /// Brings the app to the foreground to continue at the tapped content.
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

    /// Returns the configuration as an intent of the given type, with its entities found by their
    /// queries; `nil` when the intent cannot be created.
    public func widgetConfigurationIntent<Intent: WidgetConfigurationIntent>(
        of type: Intent.Type
    ) async -> Intent? {
        await widget.widgetConfigurationIntent(of: type)
    }
}
