/// How the files of a widget extension are protected; the raw values are those of the entitlement.
/// Source: "Hide sensitive content".
public enum DataProtection: String, Sendable, Hashable, CaseIterable {
    /// Hidden while the device is locked.
    case complete = "NSFileProtectionComplete"
    /// Hidden while the device is locked with a passcode.
    case completeUnlessOpen = "NSFileProtectionCompleteUnlessOpen"
    /// Hidden until the person authenticates after a restart.
    case completeUntilFirstUserAuthentication =
        "NSFileProtectionCompleteUntilFirstUserAuthentication"
    /// Never encrypted. A placeholder still stands for the widget until the person authenticates
    /// after a restart.
    case none = "NSFileProtectionNone"

    /// Whether a placeholder stands for the widget's content.
    public func hidesContent(while lock: DeviceLock) -> Bool {
        switch lock {
        case .unlocked: false
        case .lockedWithoutPasscode: self == .complete
        case .lockedWithPasscode: self == .complete || self == .completeUnlessOpen
        case .beforeFirstUnlock: true
        }
    }

    /// Whether a timeline may be built, which reads the extension's files.
    public func rebuildPermission(while lock: DeviceLock) -> RebuildPermission {
        // Files without protection are readable even where the widget is not shown.
        self != .none && hidesContent(while: lock) ? .afterUnlock : .now
    }
}

/// Whether a timeline may be built at the moment, for example because a notification asks for it.
///
/// Nothing has to be remembered for the retry except that the timeline is stale: whoever asks
/// again at the next change of the lock gets the new answer.
public enum RebuildPermission: Sendable, Hashable {
    /// The provider can read what it needs.
    case now
    /// It cannot: the timeline in the archive stays as it is, and counts as stale, until the
    /// person unlocks the device.
    case afterUnlock
}
