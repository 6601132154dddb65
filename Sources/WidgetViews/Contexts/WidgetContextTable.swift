/// The locations and rendering modes of each family: the tables of "Developing a WidgetKit
/// strategy" and "Preparing widgets for additional platforms, contexts, and appearances", with the
/// versions from the families' own pages.
///
/// Names that are not in the tables may exist in a newer system. See
/// ``WidgetContextRules/admitsUnknownNames``.
public enum WidgetContextTable {
    /// A location of a platform, and the first version of the system that has it.
    public struct Place: Sendable, Hashable {
        /// The platform.
        public let platform: WidgetDevice.Platform
        /// The location.
        public let location: WidgetLocation
        /// The first major version with this location.
        public let since: Int

        init(_ platform: WidgetDevice.Platform, _ location: WidgetLocation, since: Int) {
            self.platform = platform
            self.location = location
            self.since = since
        }
    }

    /// The places of each known family.
    public static let places: [WidgetFamily: [Place]] = [
        .systemSmall: everywhere + [
            Place(.iOS, .standBy, since: 17), Place(.iOS, .carPlay, since: 26),
            Place(.iPadOS, .lockScreen, since: 17),
        ],
        .systemMedium: everywhere,
        .systemLarge: everywhere,
        .systemExtraLarge: [
            Place(.iPadOS, .homeScreen, since: 15),
            Place(.macOS, .desktop, since: 14), Place(.macOS, .notificationCenter, since: 14),
            Place(.visionOS, .surface, since: 26),
        ],
        .systemExtraLargePortrait: [
            Place(.iOS, .homeScreen, since: 27), Place(.iOS, .iPhoneWidgetsOnMac, since: 27),
            Place(.iPadOS, .homeScreen, since: 27),
            Place(.macOS, .desktop, since: 27), Place(.macOS, .notificationCenter, since: 27),
            Place(.visionOS, .surface, since: 26),
        ],
        .accessoryCircular: lockScreens + complication + smartStack + roundAndRectangularInVision,
        .accessoryRectangular: lockScreens + complication + smartStack
            + roundAndRectangularInVision,
        .accessoryInline: lockScreens + complication,
        .accessoryCorner: complication,
    ]

    /// The rendering modes of known families; families that are not listed have all modes.
    public static let renderingModes: [WidgetFamily: Set<WidgetRenderingMode>] = [
        .accessoryCircular: [.accented, .vibrant],
        .accessoryCorner: [.accented, .vibrant],
        .accessoryInline: [.accented, .vibrant],
    ]

    /// Returns whether any family has a place at this location.
    static func knows(_ location: WidgetLocation) -> Bool {
        places.values.contains { $0.contains { $0.location == location } }
    }

    /// Returns whether the family is one of the Lock Screen's and watch's accessory shapes.
    static func isAccessory(_ family: WidgetFamily) -> Bool {
        switch family {
        case .accessoryCircular, .accessoryCorner, .accessoryInline, .accessoryRectangular: true
        default: false
        }
    }

    // The places that small, medium and large widgets have in common.
    private static let everywhere = [
        Place(.iOS, .homeScreen, since: 14), Place(.iOS, .iPhoneWidgetsOnMac, since: 17),
        Place(.iPadOS, .homeScreen, since: 14),
        Place(.macOS, .desktop, since: 14), Place(.macOS, .notificationCenter, since: 11),
        Place(.visionOS, .surface, since: 26),
    ]
    private static let lockScreens = [
        Place(.iOS, .lockScreen, since: 16), Place(.iPadOS, .lockScreen, since: 17),
    ]
    private static let complication = [Place(.watchOS, .watchFace, since: 9)]
    private static let smartStack = [Place(.watchOS, .smartStack, since: 10)]
    private static let roundAndRectangularInVision = [Place(.visionOS, .surface, since: 27)]
}
