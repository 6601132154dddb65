/// The reason why the buttons and toggles of a widget are inactive. Source: "Review widgets that
/// support interactive views".
public enum InteractionRefusal: Error, Sendable, Hashable, CustomStringConvertible {
    /// The family supports no buttons and toggles on any platform.
    case family(WidgetFamily)
    /// The family supports no buttons and toggles on this platform.
    case platform(WidgetFamily, WidgetDevice.Platform)
    /// The device is locked; they work after authentication.
    case locked
    /// The widget does not, or no longer, show such a button or toggle.
    case notShown

    /// The reason, as a sentence without its full stop.
    public var description: String {
        switch self {
        case .family(let family):
            "\(family) is not for buttons and toggles"
        case .platform(let family, let platform):
            "\(family) is for buttons and toggles on iPhone and iPad only, not on "
                + platform.deviceName
        case .locked:
            "buttons and toggles are inactive until the person unlocks the device"
        case .notShown:
            "the widget shows no such button or toggle"
        }
    }
}

extension WidgetContextRules {
    /// Returns the reason why buttons and toggles are inactive; `nil` when they work. A permanent
    /// reason takes precedence over a lock, which ends with authentication. The location is no
    /// reason: CarPlay itself decides what it does with buttons and toggles.
    public func interactionRefusal(
        for family: WidgetFamily, on platform: WidgetDevice.Platform, lock: DeviceLock
    ) -> InteractionRefusal? {
        switch family {
        case .systemSmall, .systemMedium, .systemLarge, .systemExtraLarge,
            .systemExtraLargePortrait:
            break
        case .accessoryCircular, .accessoryRectangular:
            guard platform == .iOS || platform == .iPadOS else {
                return .platform(family, platform)
            }
        default:
            return .family(family)
        }
        return lock == .unlocked ? nil : .locked
    }
}
