import Foundation
import WidgetModel

/// The app of the widgets, as a client reaches it whose own process is that of their extension: what
/// performs the intents of ``IntentProcess/app``, and is opened when a person taps a widget.
///
/// The host gives it to its ``TimelineClient/TimelineClient``, with whatever leads from one process to
/// the other; where the app and its extension are one, it calls ``WidgetRuntime/perform(_:)``. On
/// Apple's systems App Intents does all of this.
public protocol AppProcess: Sendable {
    /// Performs an intent in the app's process, which is started when it does not run, and returns
    /// when its `perform()` has: the widget's timeline is built then, and reads what it left behind
    /// (article "Adding interactivity to widgets and Live Activities", "Implement the perform
    /// function").
    ///
    /// - Parameters:
    ///   - call: To be performed by the app's ``WidgetRuntime/perform(_:)``; see ``IntentCall/json``.
    ///   - inForeground: Whether the app comes to the foreground first: its
    ///     ``AppIntent/openAppWhenRun`` says so.
    /// - Throws: What the intent throws, or why nothing was performed. A toggle shows the
    ///   `errorDescription` of a `LocalizedError`.
    func perform(_ call: IntentCall, inForeground: Bool) async throws

    /// Brings the app to the foreground, to continue what a person tapped.
    ///
    /// - Throws: Why it was not opened.
    func open(_ activity: WidgetActivity) async throws
}

/// What an app is opened with when a person taps a widget; `NSUserActivity` on Apple's systems
/// (articles "Creating a widget extension", "Respond to user interactions", and "Making a configurable
/// widget", "Access customized values in your app").
public struct WidgetActivity: Sendable, Hashable {
    /// The widget that was tapped, with what the person chose for it.
    public var widget: WidgetInfo
    /// Where the link that was tapped leads, or else what the widget says with `widgetURL`; `nil` when
    /// it says nothing.
    public var url: URL?

    /// An activity.
    public init(widget: WidgetInfo, url: URL?) {
        self.widget = widget
        self.url = url
    }

    /// What the person chose, as an intent of the given type, its entities found by their queries;
    /// `nil` when it cannot be made of it.
    public func widgetConfigurationIntent<Intent: WidgetConfigurationIntent>(
        of type: Intent.Type
    ) async -> Intent? {
        await widget.widgetConfigurationIntent(of: type)
    }
}
