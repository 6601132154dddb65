import Foundation
import WidgetViews

/// The activity that a tap on a widget starts, by the name that apps know.
public typealias NSUserActivity = WidgetActivity

extension WidgetActivity {
    /// The kind of the tapped widget.
    public var activityType: String { widget.kind }
    /// The destination of the tapped link, or else the widget's `widgetURL`.
    public var webpageURL: URL? { url }
    /// The kind and the family of the tapped widget, by ``WidgetCenter/UserInfoKey``.
    public var userInfo: [AnyHashable: Any]? {
        [
            WidgetCenter.UserInfoKey.kind: widget.kind,
            WidgetCenter.UserInfoKey.family: widget.family,
        ]
    }
}

extension WidgetCenter {
    /// The names in ``WidgetActivity/userInfo``.
    public enum UserInfoKey {
        /// The name of the kind.
        public static let kind = "kind"
        /// The name of the family.
        public static let family = "family"
    }
}

extension View {
    /// Calls a function with the activity of a tapped widget of this kind (article "Making a
    /// configurable widget", "Access customized values in your app").
    public func onContinueUserActivity(
        _ activityType: String, perform action: @escaping (NSUserActivity) -> Void
    ) -> some View {
        ReceivingView(content: self) { if $0.activityType == activityType { action($0) } }
    }

    /// Calls a function with the address that a tap opens (article "Creating a widget extension",
    /// "Respond to user interactions").
    public func onOpenURL(perform action: @escaping (URL) -> Void) -> some View {
        ReceivingView(content: self) { if let url = $0.url { action(url) } }
    }

    /// Passes an activity to the functions of an app's view. An ``AppProcess`` calls it when it is
    /// opened.
    public func receive(_ activity: WidgetActivity) {
        let location = WidgetContextTable.places[activity.widget.family]?.first
        let environment = try? WidgetContextRules().environment(
            of: activity.widget, with: WidgetTraits(), at: location?.location ?? .homeScreen,
            on: WidgetDevice(location?.platform ?? .iOS))
        Received.$activity.withValue(activity) { _ = environment?.draw { self } }
    }
}

private enum Received {
    @TaskLocal static var activity: WidgetActivity?
}

private struct ReceivingView<Content: View>: View {
    let content: Content
    let receive: (WidgetActivity) -> Void

    var body: some View {
        if let activity = Received.activity { receive(activity) }
        return content
    }
}
