/// The reasons why content must not be recognizable.
public struct RedactionReasons: OptionSet, Sendable, Hashable {
    /// The reasons as bits.
    public let rawValue: Int

    /// Creates a set of reasons from bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// The whole content is generic: the provider's placeholder is shown.
    public static let placeholder = RedactionReasons(rawValue: 1)
    /// Content marked as sensitive is hidden.
    public static let privacy = RedactionReasons(rawValue: 2)
    /// The content is out of date, and looks pending.
    public static let invalidated = RedactionReasons(rawValue: 4)
}

/// The person's settings for hiding content marked as sensitive. Source: "Hide sensitive content".
public struct SensitiveContentSettings: Sendable, Hashable {
    /// The complications of a watch that hide sensitive content in Always On.
    public enum HiddenComplications: Sendable, Hashable {
        /// All complications.
        case all
        /// The complications of these widget kinds.
        case kinds(Set<String>)
    }

    /// Whether the Lock Screen of iPhone and iPad shows sensitive content while the device is
    /// locked.
    public var showsOnLockScreen: Bool
    /// Whether iPhone and iPad show sensitive content in Always On.
    public var showsInAlwaysOn: Bool
    /// The complications that hide sensitive content. Apple Watch uses this setting instead of the
    /// others.
    public var hiddenComplications: HiddenComplications

    /// Creates settings. The default hides nothing.
    public init(
        showsOnLockScreen: Bool = true, showsInAlwaysOn: Bool = true,
        hiddenComplications: HiddenComplications = .kinds([])
    ) {
        self.showsOnLockScreen = showsOnLockScreen
        self.showsInAlwaysOn = showsInAlwaysOn
        self.hiddenComplications = hiddenComplications
    }

    func hidesComplication(of kind: String) -> Bool {
        switch hiddenComplications {
        case .all: true
        case .kinds(let kinds): kinds.contains(kind)
        }
    }
}
