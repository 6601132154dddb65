/// Starts or pauses playing sound or video.
public protocol AudioPlaybackIntent: AppIntent {}

/// Changes a Live Activity.
public protocol LiveActivityIntent: AppIntent {}

/// Begins without the app in the foreground and may ask for it.
public protocol ForegroundContinuableIntent: AppIntent {}

/// Starts or ends a transmission of push-to-talk.
public protocol PushToTalkTransmissionIntent: AppIntent {}

/// Where an intent's `perform()` runs (article "Adding interactivity to widgets and Live
/// Activities", "Implement the perform function").
public enum IntentProcess: Sendable, Hashable {
    /// In the process of the widget extension, which is the client's own: the ordinary case.
    case widgetExtension
    /// In the app's process, which a client reaches through its ``AppProcess``.
    case app
}

extension AppIntent {
    /// Where it runs: in the app's process when it opens the app, or is of a kind that only the app
    /// can do.
    public static var process: IntentProcess {
        let isOfTheApp =
            openAppWhenRun || self is any AudioPlaybackIntent.Type
            || self is any LiveActivityIntent.Type || self is any ForegroundContinuableIntent.Type
            || self is any PushToTalkTransmissionIntent.Type
        return isOfTheApp ? .app : .widgetExtension
    }
}
