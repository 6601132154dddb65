/// The tables' rules, and the choices where the sources are silent: each of those is a property
/// here, whose default is documented.
///
/// The functions are pure: the same widget, device and state give the same answer.
public struct WidgetContextRules: Sendable, Hashable {
    /// The modes of each location, the one it has by itself first; all modes where none are
    /// stated. The sources state that CarPlay has full colour, the Lock Screen a vibrant look, and
    /// the Home Screen and the Mac full colour or accents, the desktop also the vibrant look.
    /// StandBy's day and the watch's order are this library's choice.
    public var renderingModes: [WidgetLocation: [WidgetRenderingMode]] = [
        .homeScreen: [.fullColor, .accented],
        .notificationCenter: [.fullColor, .accented],
        .lockScreen: [.vibrant],
        .standBy: [.fullColor, .vibrant],
        .carPlay: [.fullColor],
    ]
    /// The mode of StandBy in low light, which the sources mention with the vibrant look.
    public var lowLightRenderingMode = WidgetRenderingMode.vibrant
    /// Locations that remove the background in every mode. The sources name StandBy and CarPlay;
    /// that a watch face does is this library's choice.
    public var backgroundlessLocations: Set<WidgetLocation> = [.standBy, .carPlay, .watchFace]
    /// Modes that remove the background everywhere. The sources name the vibrant one; that accents
    /// put glass or a tint in its place is this library's reading.
    public var backgroundlessModes: Set<WidgetRenderingMode> = [.accented, .vibrant]
    /// Locations closed to system families whose background cannot be removed. The sources give
    /// the Lock Screen as one example of several.
    public var locationsRequiringRemovableBackground: Set<WidgetLocation> = [.lockScreen]
    /// Locations that Always On keeps visible with reduced luminance. The sources speak of
    /// accessory widgets and complications only.
    public var alwaysOnLocations: Set<WidgetLocation> = [.lockScreen, .smartStack, .watchFace]
    /// Locations that count as the Lock Screen when people hide what is sensitive there. StandBy
    /// does, because the sources call it a Lock Screen; CarPlay they leave open.
    public var sensitiveLockScreenLocations: Set<WidgetLocation> = [.lockScreen, .standBy]
    /// Protection that keeps an iPhone's widgets from Macs. A reply in Apple's forum has it the
    /// other way round; this is the article's.
    public var protectionsKeptFromMac: Set<DataProtection> = [.complete, .completeUnlessOpen]
    /// Whether buttons and toggles work in CarPlay. The sources say that they are adapted to it,
    /// and not how.
    public var allowsInteractionInCarPlay = true
    /// Whether families and locations that are in no table are let through.
    public var admitsUnknownNames = true

    /// The defaults.
    public init() {}

    /// Makes sure that widgets of `family` exist at `location` on `device`.
    ///
    /// - Throws: The table's reason when they do not.
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

    /// Makes sure that widgets of `family` exist at `location` on `device` and are rendered there
    /// in `mode`. Source: "Preparing widgets for additional platforms, contexts, and appearances".
    ///
    /// - Throws: The table's reason when they are not.
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

    /// Makes sure that a widget with these traits is available as `family` at `location`.
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

    /// The modes that a widget of `family` has at `location`, the one it has by itself first:
    /// what a provider has to be prepared for. Empty where none fits both.
    public func renderingModes(
        of family: WidgetFamily, at location: WidgetLocation
    ) -> [WidgetRenderingMode] {
        let modes = renderingModes[location] ?? WidgetRenderingMode.allCases
        guard let allowed = WidgetContextTable.renderingModes[family] else { return modes }
        return modes.filter { allowed.contains($0) }
    }

    /// Older systems have no backgrounds that can be removed.
    func hasContainerBackgrounds(_ device: WidgetDevice) -> Bool {
        switch device.platform {
        case .iOS, .iPadOS: device.has(major: 17)
        case .watchOS: device.has(major: 10)
        case .macOS: device.has(major: 14)
        case .visionOS: true
        }
    }
}
