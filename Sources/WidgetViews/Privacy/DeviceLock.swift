/// The lock state of a device.
public enum DeviceLock: Sendable, Hashable, CaseIterable {
    /// Unlocked and in use.
    case unlocked
    /// Locked without a passcode: anyone who wakes the device can use it.
    case lockedWithoutPasscode
    /// Locked with a passcode, and unlocked at least once since it started.
    case lockedWithPasscode
    /// Started, but not yet unlocked since.
    case beforeFirstUnlock
}
