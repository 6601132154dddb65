/// Whether a device is locked.
public enum DeviceLock: Sendable, Hashable, CaseIterable {
    /// In use by its owner.
    case unlocked
    /// Locked, and no passcode is set: whoever wakes it can use it.
    case lockedWithoutPasscode
    /// Locked with a passcode, and unlocked at least once since it started.
    case lockedWithPasscode
    /// Started, and nobody has authenticated since.
    case beforeFirstUnlock
}
