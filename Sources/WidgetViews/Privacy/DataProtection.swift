/// The data protection of a widget extension's files. The raw values are those of the entitlement.
/// Source: "Hide sensitive content".
public enum DataProtection: String, Sendable, Hashable, CaseIterable {
    /// Content is hidden while the device is locked.
    case complete = "NSFileProtectionComplete"
    /// Content is hidden while the device is locked with a passcode.
    case completeUnlessOpen = "NSFileProtectionCompleteUnlessOpen"
    /// Content is hidden after a restart until the person authenticates.
    case completeUntilFirstUserAuthentication =
        "NSFileProtectionCompleteUntilFirstUserAuthentication"
    /// Files are never encrypted. After a restart a placeholder still replaces the widget until the
    /// person authenticates.
    case none = "NSFileProtectionNone"

    /// Returns whether a placeholder replaces the widget's content.
    public func hidesContent(while lock: DeviceLock) -> Bool {
        switch lock {
        case .unlocked: false
        case .lockedWithoutPasscode: self == .complete
        case .lockedWithPasscode: self == .complete || self == .completeUnlessOpen
        case .beforeFirstUnlock: true
        }
    }

    /// Returns whether a timeline, which requires reading the extension's files, may be built.
    public func rebuildPermission(while lock: DeviceLock) -> RebuildPermission {
        // Unprotected files are readable even while the widget is hidden.
        self != .none && hidesContent(while: lock) ? .afterUnlock : .now
    }
}

/// The permission to build a timeline at the moment, for example after a notification.
///
/// A caller remembers only that the timeline is stale, and asks again after each change of the
/// lock.
public enum RebuildPermission: Sendable, Hashable {
    /// The provider can read its files.
    case now
    /// The provider cannot read its files. The archived timeline stays as it is, and counts as
    /// stale, until the person unlocks the device.
    case afterUnlock
}
