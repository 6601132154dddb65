/// Which known family exists on which platform: Apple's table in "Developing a WidgetKit
/// strategy", with `systemExtraLargePortrait` and the accessories of Apple Vision Pro as their newer
/// symbol pages have them. Families that are
/// not in the table are open: a newer system may know them.
public enum WidgetFamilies {
    /// The platforms with widgets, in WidgetKit's spelling.
    public static let platforms = ["iOS", "iPadOS", "watchOS", "macOS", "visionOS"]

    /// Platforms of each known family.
    public static let table: [String: Set<String>] = [
        "systemSmall": ["iOS", "iPadOS", "macOS", "visionOS"],
        "systemMedium": ["iOS", "iPadOS", "macOS", "visionOS"],
        "systemLarge": ["iOS", "iPadOS", "macOS", "visionOS"],
        "systemExtraLarge": ["iPadOS", "macOS", "visionOS"],
        "systemExtraLargePortrait": ["iOS", "iPadOS", "macOS", "visionOS"],
        "accessoryCircular": ["iOS", "iPadOS", "watchOS", "visionOS"],
        "accessoryRectangular": ["iOS", "iPadOS", "watchOS", "visionOS"],
        "accessoryCorner": ["watchOS"],
        "accessoryInline": ["iOS", "iPadOS", "watchOS"],
    ]

    /// Whether `platform` is one that a kind declared for `platforms` is offered on. An app for
    /// iOS runs on the iPad too.
    public static func isOffered(on platform: String, declared platforms: [String]) -> Bool {
        platforms.isEmpty || platforms.contains(platform)
            || (platform == "iPadOS" && platforms.contains("iOS"))
    }
}
