/// The platforms of the known families: Apple's table in "Developing a WidgetKit strategy", with
/// `systemExtraLargePortrait` and the accessories of Apple Vision Pro according to their newer
/// symbol pages. Families that are not in the table may exist in a newer system.
public enum WidgetFamilies {
    /// The platforms with widgets, by WidgetKit's names.
    public static let platforms = ["iOS", "iPadOS", "watchOS", "macOS", "visionOS"]

    /// The platforms of each known family.
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

    /// Returns whether a kind declared for `platforms` is available on `platform`. An app for iOS
    /// also runs on the iPad.
    public static func isOffered(on platform: String, declared platforms: [String]) -> Bool {
        platforms.isEmpty || platforms.contains(platform)
            || (platform == "iPadOS" && platforms.contains("iOS"))
    }
}
