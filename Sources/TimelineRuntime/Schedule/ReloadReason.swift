/// The reason for asking a widget for its next timeline.
public enum ReloadReason: Sendable, Hashable {
    /// The reload policy of its timeline.
    case policy
    /// A notification of the gateway that it is stale.
    case notification
    /// A call of the app to ``WidgetCenter``.
    case app
    /// The use of a button or toggle of the widget; WidgetKit always reloads after that.
    case interaction
    /// A change of a setting or state of the system.
    case system(SystemChange)
    /// The lack of a timeline: the widget was just placed, or its archive was lost.
    case placeholder

    /// A change after which the system reloads widgets on its own.
    public enum SystemChange: String, Sendable, Hashable, CaseIterable {
        /// The language or region changed.
        case locale
        /// The text size or an accessibility setting changed.
        case accessibility
        /// The clock or the time zone was set.
        case time
        /// A different account signed in.
        case account
        /// The device's location changed significantly.
        case location
    }

    /// Whether the reload runs at once and counts towards no budget. (Apple, Keeping a widget up to
    /// date; time, account and location: WWDC21. Exempting the first timeline is this library's
    /// choice: replacing a placeholder is not an update.)
    public var isExempt: Bool {
        switch self {
        case .policy, .notification, .app: false
        case .interaction, .system, .placeholder: true
        }
    }
}

/// The app's current activity. While it is not empty, no reload of the app's widgets counts.
public struct AppActivity: OptionSet, Sendable, Hashable {
    /// The members as bits.
    public let rawValue: UInt8

    /// Creates an activity from bits.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The app is in the foreground.
    public static let foreground = AppActivity(rawValue: 1 << 0)
    /// The app plays or records in an audio session.
    public static let audioSession = AppActivity(rawValue: 1 << 1)
    /// The app gives directions in a navigation session.
    public static let navigationSession = AppActivity(rawValue: 1 << 2)
}
