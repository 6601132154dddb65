/// A place where people put widgets. The set is open: an unknown location is valid too.
///
/// The names are WidgetKit's. It has none for a Mac's own widgets and for Apple Vision Pro; those
/// names are this library's. Source: "Indicate that a widget might not fit a specific context".
public struct WidgetLocation: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// The name of the location.
    public let rawValue: String

    /// Creates a location from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The Home Screen and Today View of iPhone and iPad.
    public static let homeScreen = WidgetLocation(rawValue: "homeScreen")
    /// The Lock Screen of iPhone and iPad.
    public static let lockScreen = WidgetLocation(rawValue: "lockScreen")
    /// StandBy on iPhone.
    public static let standBy = WidgetLocation(rawValue: "standBy")
    /// The Widgets screen of a vehicle, shown by iPhone.
    public static let carPlay = WidgetLocation(rawValue: "carPlay")
    /// A Mac that shows the widgets of an iPhone. The iPhone is the device that builds them.
    public static let iPhoneWidgetsOnMac = WidgetLocation(rawValue: "iPhoneWidgetsOnMac")
    /// The Smart Stack of Apple Watch.
    public static let smartStack = WidgetLocation(rawValue: "smartStack")
    /// A watch face: the widget is a complication.
    public static let watchFace = WidgetLocation(rawValue: "watchFace")
    /// A Mac's desktop, for widgets of the Mac's own apps. Not a WidgetKit name.
    public static let desktop = WidgetLocation(rawValue: "desktop")
    /// A Mac's Notification Center, for widgets of the Mac's own apps. Not a WidgetKit name.
    public static let notificationCenter = WidgetLocation(rawValue: "notificationCenter")
    /// A wall or table, with Apple Vision Pro. Not a WidgetKit name.
    public static let surface = WidgetLocation(rawValue: "surface")
    /// The Dynamic Island of iPhone, for Live Activities. Not a WidgetKit name.
    public static let dynamicIsland = WidgetLocation(rawValue: "dynamicIsland")

    /// The locations above by name. A table of contexts may have others.
    package static let known = Dictionary(
        uniqueKeysWithValues: [
            homeScreen, lockScreen, standBy, carPlay, iPhoneWidgetsOnMac, smartStack, watchFace,
            desktop, notificationCenter, surface, dynamicIsland,
        ].map { ($0.rawValue, $0) })

    /// The name of the location.
    public var description: String { rawValue }

    /// The location as it appears in sentences.
    var phrase: String {
        switch self {
        case .homeScreen: "the Home Screen"
        case .lockScreen: "the Lock Screen"
        case .standBy: "StandBy"
        case .carPlay: "CarPlay"
        case .iPhoneWidgetsOnMac: "iPhone widgets on Mac"
        case .smartStack: "the Smart Stack"
        case .watchFace: "watch faces"
        case .desktop: "the desktop"
        case .notificationCenter: "Notification Center"
        case .surface: "surfaces"
        case .dynamicIsland: "the Dynamic Island"
        default: rawValue
        }
    }
}
