import Foundation

/// The rules of the tables, and the choices made where the sources are silent. Each such choice is
/// a property with a documented default.
///
/// The functions are pure: equal widgets, devices and states give equal results.
public struct WidgetContextRules: Sendable, Hashable {
    /// The rendering modes of each location, its default first; locations that are not listed have
    /// all modes. The sources state full color for CarPlay, vibrant for the Lock Screen, and full
    /// color or accented for the Home Screen and the Mac, whose desktop is also vibrant. StandBy by
    /// day and the order for the watch are this library's choice.
    public var renderingModes: [WidgetLocation: [WidgetRenderingMode]] = [
        .homeScreen: [.fullColor, .accented],
        .notificationCenter: [.fullColor, .accented],
        .lockScreen: [.vibrant],
        .standBy: [.fullColor, .vibrant],
        .carPlay: [.fullColor],
    ]
    /// The rendering mode of StandBy in low light, which the sources associate with the vibrant
    /// mode.
    public var lowLightRenderingMode = WidgetRenderingMode.vibrant
    /// The locations that remove the background in every mode. The sources name StandBy and
    /// CarPlay; the watch face is this library's choice.
    public var backgroundlessLocations: Set<WidgetLocation> = [.standBy, .carPlay, .watchFace]
    /// The modes that remove the background everywhere. The sources name the vibrant mode; that the
    /// accented mode replaces it with glass or a tint is this library's reading.
    public var backgroundlessModes: Set<WidgetRenderingMode> = [.accented, .vibrant]
    /// The locations closed to system families whose background cannot be removed. The sources give
    /// the Lock Screen as one example of several.
    public var locationsRequiringRemovableBackground: Set<WidgetLocation> = [.lockScreen]
    /// The locations that Always On keeps visible with reduced luminance. The sources mention only
    /// accessory widgets and complications.
    public var alwaysOnLocations: Set<WidgetLocation> = [.lockScreen, .smartStack, .watchFace]
    /// The locations that count as the Lock Screen when people hide sensitive content there.
    /// StandBy counts because the sources call it a Lock Screen; they leave CarPlay open.
    public var sensitiveLockScreenLocations: Set<WidgetLocation> = [.lockScreen, .standBy]
    /// The data protection that keeps an iPhone's widgets off Macs. A reply in Apple's forum states
    /// the opposite; this follows the article.
    public var protectionsKeptFromMac: Set<DataProtection> = [.complete, .completeUnlessOpen]
    /// The families in which a `Link` works; in others the whole widget is one place to tap.
    /// Source: "Respond to user interactions". "Developing a WidgetKit strategy" adds
    /// `systemSmall`; the portrait family is this library's choice.
    public var linkFamilies: Set<WidgetFamily> = [
        .systemMedium, .systemLarge, .systemExtraLarge, .systemExtraLargePortrait,
    ]
    /// The space of widgets, in points, where the device's state names none. A family that is not
    /// listed has its ``WidgetFamily/displaySize``, without a scale.
    public var availableSizes: [WidgetLocation: [WidgetFamily: CGSize]] = [:]
    /// Whether families and locations that no table lists are allowed.
    public var admitsUnknownNames = true

    /// Creates rules with the default choices.
    public init() {}

    /// Checks that widgets of `family` exist at `location` on `device`.
    ///
    /// - Throws: The reason from the table when they do not.
    public func check(
        _ family: WidgetFamily, at location: WidgetLocation, on device: WidgetDevice
    ) throws(UnsupportedContext) {
        let isKnown = WidgetContextTable.knows(location)
        guard isKnown || admitsUnknownNames else { throw .unknownName(location.rawValue) }
        guard let places = WidgetContextTable.places[family] else {
            guard admitsUnknownNames else { throw .unknownName(family.rawValue) }
            return
        }
        let onPlatform = places.filter { $0.platform == device.platform }
        guard !onPlatform.isEmpty else { throw .platform(family, device.platform) }
        guard isKnown else { return }
        guard let place = onPlatform.first(where: { $0.location == location }) else {
            throw .location(family, location, device.platform)
        }
        guard device.has(major: place.since) else {
            throw .version(family, location, since: place.since, device)
        }
    }

    /// Checks that widgets of `family` exist at `location` on `device` and are rendered there in
    /// `mode`. Source: "Preparing widgets for additional platforms, contexts, and appearances".
    ///
    /// - Throws: The reason from the table when they are not.
    public func check(
        _ family: WidgetFamily, at location: WidgetLocation, on device: WidgetDevice,
        in mode: WidgetRenderingMode
    ) throws(UnsupportedContext) {
        try check(family, at: location, on: device)
        if let modes = WidgetContextTable.renderingModes[family], !modes.contains(mode) {
            throw .renderingMode(family, mode)
        }
        if let modes = renderingModes[location], !modes.contains(mode) {
            throw .renderingModeAtLocation(location, mode, allowed: modes)
        }
    }

    /// Checks that a widget with these traits is available as `family` at `location`.
    ///
    /// - Throws: The reason when it is not.
    public func check(
        _ family: WidgetFamily, with traits: WidgetTraits, at location: WidgetLocation,
        on device: WidgetDevice
    ) throws(UnsupportedContext) {
        try check(family, at: location, on: device)
        guard traits.supports(family) else { throw .undeclared(family) }
        if !traits.isContainerBackgroundRemovable, hasContainerBackgrounds(device),
            locationsRequiringRemovableBackground.contains(location),
            !WidgetContextTable.isAccessory(family)
        {
            throw .backgroundNotRemovable(family, location)
        }
        if location == .iPhoneWidgetsOnMac, protectionsKeptFromMac.contains(traits.dataProtection) {
            throw .protectedFromMac(traits.dataProtection)
        }
    }

    /// Returns the rendering modes of `family` at `location`, the default first. A provider must
    /// support all of them. Empty when the family and the location have no mode in common.
    public func renderingModes(
        of family: WidgetFamily, at location: WidgetLocation
    ) -> [WidgetRenderingMode] {
        let modes = renderingModes[location] ?? WidgetRenderingMode.allCases
        guard let allowed = WidgetContextTable.renderingModes[family] else { return modes }
        return modes.filter { allowed.contains($0) }
    }

    /// Returns whether the system has removable backgrounds; older versions do not.
    func hasContainerBackgrounds(_ device: WidgetDevice) -> Bool {
        switch device.platform {
        case .iOS, .iPadOS: device.has(major: 17)
        case .watchOS: device.has(major: 10)
        case .macOS: device.has(major: 14)
        case .visionOS: true
        }
    }
}
