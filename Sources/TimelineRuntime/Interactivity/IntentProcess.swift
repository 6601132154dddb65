import WidgetViews

/// An intent that starts or pauses audio or video playback.
public protocol AudioPlaybackIntent: AppIntent {}

/// An intent that changes a Live Activity.
public protocol LiveActivityIntent: AppIntent {}

/// An intent that starts in the background and may bring the app to the foreground.
public protocol ForegroundContinuableIntent: AppIntent {}

/// An intent that starts or ends a push-to-talk transmission.
public protocol PushToTalkTransmissionIntent: AppIntent {}

/// The process in which an intent's `perform()` runs (article "Adding interactivity to widgets and
/// Live Activities", "Implement the perform function").
public enum IntentProcess: Sendable, Hashable {
    /// The process of the widget extension, which is the client's own. The default.
    case widgetExtension
    /// The app's process, which a client reaches through its ``AppProcess``.
    case app
}

extension AppIntent {
    /// The process in which the intent runs: the app's process if it opens the app, or conforms to
    /// a protocol for actions that only the app can perform.
    public static var process: IntentProcess {
        let isOfTheApp =
            openAppWhenRun || self is any AudioPlaybackIntent.Type
            || self is any LiveActivityIntent.Type || self is any ForegroundContinuableIntent.Type
            || self is any PushToTalkTransmissionIntent.Type
        return isOfTheApp ? .app : .widgetExtension
    }
}
