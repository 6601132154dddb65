/// Why a widget is asked for its next timeline.
public enum ReloadReason: Sendable, Hashable {
    /// Its timeline's reload policy.
    case policy
    /// The gateway told that it is stale.
    case notification
    /// The app called ``WidgetCenter``.
    case app
    /// A person used a button or toggle of the widget; WidgetKit always reloads after that.
    case interaction
    /// The system shows or knows something else than before.
    case system(SystemChange)
    /// There is no timeline to be shown of it: it was placed just now, or its archive is lost.
    case placeholder

    /// What the system reloads widgets for by itself.
    public enum SystemChange: Sendable, Hashable {
        /// Another language or region.
        case locale
        /// Another text size or accessibility setting.
        case accessibility
        /// The clock or the time zone was set.
        case time
        /// Another account is signed in.
        case account
        /// The device is somewhere else: a significant change, not every step.
        case location
    }

    /// Whether it runs at once and counts towards no budget. (Apple, Keeping a widget up to date;
    /// time, account and location: WWDC21. That a first timeline does not count is this library's
    /// choice: what one shows in the place of a widget is no update.)
    public var isExempt: Bool {
        switch self {
        case .policy, .notification, .app: false
        case .interaction, .system, .placeholder: true
        }
    }
}

/// What the app does at the moment; while it does any of these, no reload of its widgets counts.
public struct AppActivity: OptionSet, Sendable, Hashable {
    /// The members as bits.
    public let rawValue: UInt8

    /// The activity with these bits.
    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The app is in the foreground.
    public static let foreground = AppActivity(rawValue: 1 << 0)
    /// The app plays or records in an audio session.
    public static let audioSession = AppActivity(rawValue: 1 << 1)
    /// The app guides in a navigation session.
    public static let navigationSession = AppActivity(rawValue: 1 << 2)
}
