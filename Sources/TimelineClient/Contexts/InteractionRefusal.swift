/// Why the buttons and toggles of a widget do nothing. Source: "Review widgets that support
/// interactive views".
public enum InteractionRefusal: Error, Sendable, Hashable, CustomStringConvertible {
    /// The family has none on any platform.
    case family(WidgetFamily)
    /// The family has none on this platform.
    case platform(WidgetFamily, WidgetDevice.Platform)
    /// None work there.
    case location(WidgetLocation)
    /// The device is locked: they work after authentication.
    case locked
    /// The widget shows no such button or toggle, or no more.
    case notShown

    /// The reason, as a sentence without its full stop.
    public var description: String {
        switch self {
        case .family(let family):
            "\(family) is not for buttons and toggles"
        case .platform(let family, let platform):
            "\(family) is for buttons and toggles on iPhone and iPad only, not on "
                + platform.deviceName
        case .location(let location):
            "\(location.phrase) is not for buttons and toggles"
        case .locked:
            "buttons and toggles are inactive until the person unlocks the device"
        case .notShown:
            "the widget shows no such button or toggle"
        }
    }
}

extension WidgetContextRules {
    /// Why buttons and toggles do nothing; `nil` when they work. What never works is told before
    /// what works after authentication.
    public func interactionRefusal(
        for family: WidgetFamily, at location: WidgetLocation,
        on platform: WidgetDevice.Platform, lock: DeviceLock
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
        if location == .carPlay, !allowsInteractionInCarPlay { return .location(location) }
        return lock == .unlocked ? nil : .locked
    }
}
