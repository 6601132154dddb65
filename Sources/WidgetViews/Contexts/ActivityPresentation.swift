import Foundation
import WidgetModel

/// A form in which a Live Activity is shown: on the Lock Screen, or in the Dynamic Island with all
/// regions, on both sides of the camera, or beside another activity. As a ``WidgetFamily`` it has
/// the same name.
public enum ActivityPresentation: String, Sendable, Hashable, CaseIterable {
    case lockScreen, expanded, compact, minimal

    /// The presentation as a family.
    public var family: WidgetFamily { WidgetFamily(rawValue: rawValue) }

    /// The location of the presentation.
    public var location: WidgetLocation { self == .lockScreen ? .lockScreen : .dynamicIsland }

    /// Whether buttons and toggles work in it (article "Adding interactivity to widgets and Live
    /// Activities", "Review widgets that support interactive views"), and links do.
    public var isInteractive: Bool { self == .lockScreen || self == .expanded }

    /// The layout size in points, from Apple's design guidelines for a screen of 393 × 852 points.
    public var displaySize: CGSize {
        switch self {
        case .lockScreen, .expanded: CGSize(width: 371, height: 160)
        case .compact: CGSize(width: 230, height: 37)
        case .minimal: CGSize(width: 45, height: 37)
        }
    }

    /// Returns whether a device has it. Every iPhone counts as one with a Dynamic Island.
    public func exists(on device: WidgetDevice) -> Bool {
        switch device.platform {
        case .iOS: device.has(major: 16)
        case .iPadOS: self == .lockScreen && device.has(major: 17)
        case .macOS, .watchOS, .visionOS: false
        }
    }
}

extension WidgetContextRules {
    /// Returns the context of a presentation of a Live Activity; `nil` where the device has none.
    public func environment(
        of presentation: ActivityPresentation, on device: WidgetDevice,
        state: WidgetDeviceState = WidgetDeviceState()
    ) -> WidgetEnvironment? {
        guard presentation.exists(on: device) else { return nil }
        let isOnLockScreen = presentation == .lockScreen
        let form = self.presentation(
            of: "", with: WidgetTraits(), at: presentation.location, on: device.platform,
            state: state)
        var refusal = state.lock == .unlocked ? nil : InteractionRefusal.locked
        if !presentation.isInteractive { refusal = .family(presentation.family) }
        return WidgetEnvironment(
            widgetFamily: presentation.family, location: presentation.location,
            platform: device.platform, widgetRenderingMode: .fullColor,
            // The Dynamic Island is always black.
            colorScheme: isOnLockScreen ? state.colorScheme : .dark,
            isLuminanceReduced: isOnLockScreen && state.isAlwaysOn, locale: device.locale,
            dynamicTypeSize: device.dynamicTypeSize, levelOfDetail: .default,
            showsWidgetContainerBackground: true, displaySize: presentation.displaySize, scale: 1,
            isTintedRed: false, redactionReasons: form.redactionReasons,
            interactionRefusal: refusal)
    }
}

extension WidgetInfo {
    /// The id of the Live Activity that this stands for; `nil` for a widget, which has no parameter
    /// without a name.
    package var activityID: String? { configuration[""]?.texts.first }

    /// The presentation of a Live Activity that this stands for; `nil` for a widget.
    package var activityPresentation: ActivityPresentation? {
        activityID.flatMap { _ in ActivityPresentation(rawValue: family.rawValue) }
    }
}

extension WidgetEnvironment {
    /// The presentation of a Live Activity that this is the context of; `nil` for a widget.
    package var activityPresentation: ActivityPresentation? {
        ActivityPresentation(rawValue: widgetFamily.rawValue)
    }
}
