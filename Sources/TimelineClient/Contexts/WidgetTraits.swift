/// What a widget declares about the contexts it fits.
public struct WidgetTraits: Sendable, Hashable {
    /// The families, in the order in which a gallery shows them; `nil` for all.
    public var supportedFamilies: [WidgetFamily]?
    /// The locations a widget of a family does not fit well. It stays available there.
    /// Source: "Indicate that a widget might not fit a specific context".
    public private(set) var disfavoredLocations: [WidgetFamily: Set<WidgetLocation>] = [:]
    /// Whether the system may take the background away. Source: "Make your background views
    /// removable".
    public var isContainerBackgroundRemovable: Bool
    /// How the extension's files are protected; the same for all widgets of an extension.
    /// Source: "Hide sensitive content".
    public var dataProtection: DataProtection
    /// Whether the content has a look of its own for ``RedactionReasons/privacy``. Otherwise a
    /// placeholder takes the place of the whole widget when people hide sensitive content.
    public var configuresRedaction: Bool

    /// Nobody places it: a Smart Stack shows it while it is relevant. See ``RelevanceConfiguration``.
    public internal(set) var isRelevance = false

    /// Traits; without arguments those of a widget that declares nothing.
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

    /// Adds `locations` to those disfavored for `families`.
    public mutating func disfavor(_ locations: [WidgetLocation], for families: [WidgetFamily]) {
        for family in families { disfavoredLocations[family, default: []].formUnion(locations) }
    }

    func supports(_ family: WidgetFamily) -> Bool {
        supportedFamilies?.contains(family) ?? true
    }
}
