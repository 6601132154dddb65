/// The properties of a widget that decide which contexts it fits.
public struct WidgetTraits: Sendable, Hashable {
    /// The families in the order of a gallery; `nil` for all.
    public var supportedFamilies: [WidgetFamily]?
    /// The locations where a family of the widget does not fit well. It stays available there.
    /// Source: "Indicate that a widget might not fit a specific context".
    public private(set) var disfavoredLocations: [WidgetFamily: Set<WidgetLocation>] = [:]
    /// Whether the system may remove the background. Source: "Make your background views
    /// removable".
    public var isContainerBackgroundRemovable: Bool
    /// The protection of the extension's files; the same for all widgets of an extension. Source:
    /// "Hide sensitive content".
    public var dataProtection: DataProtection
    /// Whether the content has its own appearance for ``RedactionReasons/privacy``. Otherwise a
    /// placeholder replaces the whole widget when people hide sensitive content.
    public var configuresRedaction: Bool

    /// Whether the system keeps no margins around the content.
    public var disablesContentMargins = false
    /// The ways in which the widget may be mounted on a surface; `nil` for all.
    public var mountingStyles: Set<WidgetMountingStyle>?
    /// The material of the widget on a surface; `nil` for the system's.
    public var texture: WidgetTexture?

    /// Whether a Smart Stack shows the widget while it is relevant, without a person placing it.
    /// See ``RelevanceConfiguration``.
    public package(set) var isRelevance = false

    /// Creates traits. The defaults are those of a widget that declares nothing.
    public init(
        supportedFamilies: [WidgetFamily]? = nil, isContainerBackgroundRemovable: Bool = true,
        dataProtection: DataProtection = .completeUntilFirstUserAuthentication,
        configuresRedaction: Bool = true
    ) {
        self.supportedFamilies = supportedFamilies
        self.isContainerBackgroundRemovable = isContainerBackgroundRemovable
        self.dataProtection = dataProtection
        self.configuresRedaction = configuresRedaction
    }

    /// Marks `locations` as not fitting well for `families`.
    public mutating func disfavor(_ locations: [WidgetLocation], for families: [WidgetFamily]) {
        for family in families { disfavoredLocations[family, default: []].formUnion(locations) }
    }

    func supports(_ family: WidgetFamily) -> Bool { supportedFamilies?.contains(family) ?? true }
}

/// A way in which a widget is mounted on a surface, with Apple Vision Pro.
public enum WidgetMountingStyle: String, Sendable, Hashable, CaseIterable {
    /// Before the surface, or in it.
    case elevated, recessed
}

/// The material of a widget on a surface, with Apple Vision Pro.
public enum WidgetTexture: String, Sendable, Hashable {
    /// The platform's names for the materials.
    case glass, paper
}
