/// What the person using the device chose to hide of content that is marked as sensitive. Source:
/// "Hide sensitive content".
public struct SensitiveContentSettings: Sendable, Hashable {
    /// The complications of a watch that hide what is sensitive in Always On.
    public enum HiddenComplications: Sendable, Hashable {
        /// All of them.
        case all
        /// Those of these widget kinds.
        case kinds(Set<String>)
    }

    /// Whether the Lock Screen of iPhone and iPad shows it while the device is locked.
    public var showsOnLockScreen: Bool
    /// Whether iPhone and iPad show it in Always On.
    public var showsInAlwaysOn: Bool
    /// The complications that hide it; on Apple Watch, in place of the others.
    public var hiddenComplications: HiddenComplications

    /// Settings; without arguments nothing is hidden.
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
