import Foundation

/// Light or dark.
public enum ColorScheme: String, Sendable, Hashable, CaseIterable {
    /// Dark on light.
    case light
    /// Light on dark.
    case dark
}

/// What the device does at the moment, as far as widgets look different for it.
public struct WidgetDeviceState: Sendable, Hashable {
    /// Whether the device is locked. For ``WidgetLocation/iPhoneWidgetsOnMac`` the iPhone.
    public var lock: DeviceLock
    /// Whether the display is in its Always On state. Source: "Support Always On".
    public var isAlwaysOn: Bool
    /// Whether the surroundings are dark.
    public var isLowLight: Bool
    /// Light or dark.
    public var colorScheme: ColorScheme
    /// The look that the person or the watch face chose; `nil` for the location's own.
    public var renderingMode: WidgetRenderingMode?
    /// The space for the widget, in points; `nil`, or anything but a finite positive size, when
    /// no screen dictates one.
    public var availableSize: CGSize?
    /// What people hide.
    public var sensitiveContent: SensitiveContentSettings

    /// A state; without arguments an unlocked device in daylight.
    public init(
        lock: DeviceLock = .unlocked, isAlwaysOn: Bool = false, isLowLight: Bool = false,
        colorScheme: ColorScheme = .light, renderingMode: WidgetRenderingMode? = nil,
        availableSize: CGSize? = nil,
        sensitiveContent: SensitiveContentSettings = SensitiveContentSettings()
    ) {
        self.lock = lock
        self.isAlwaysOn = isAlwaysOn
        self.isLowLight = isLowLight
        self.colorScheme = colorScheme
        self.renderingMode = renderingMode
        self.availableSize = availableSize
        self.sensitiveContent = sensitiveContent
    }
}

/// The context a widget is shown in, as its content sees it. Made by
/// ``WidgetContextRules/environment(of:with:at:on:state:hasContent:)`` only, so that it is always
/// a context that exists.
public struct WidgetEnvironment: Sendable, Hashable {
    /// The family.
    public let widgetFamily: WidgetFamily
    /// Where the widget is.
    public let location: WidgetLocation
    /// The platform whose font metrics apply: an iPhone's also where a Mac shows the iPhone's
    /// widget. Source: "Verify font sizes in macOS".
    public let platform: WidgetDevice.Platform
    /// How it is coloured.
    public let widgetRenderingMode: WidgetRenderingMode
    /// Light or dark.
    public let colorScheme: ColorScheme
    /// Whether Always On shows the widget, with little light.
    public let isLuminanceReduced: Bool
    /// Whether the widget's background is shown: not where the system removes it.
    public let showsWidgetContainerBackground: Bool
    /// The size in points to lay the content out for.
    public let displaySize: CGSize
    /// How many times larger than `displaySize` the content is shown; 1 except in StandBy and
    /// CarPlay, which scale small widgets.
    public let scale: Double
    /// Whether everything is shown in red, as StandBy does in low light.
    public let isTintedRed: Bool
    /// What must not be recognisable.
    public internal(set) var redactionReasons: RedactionReasons
    /// Why buttons and toggles do nothing; `nil` when they work.
    public let interactionRefusal: InteractionRefusal?

    /// Whether buttons and toggles work.
    public var isInteractive: Bool { interactionRefusal == nil }
}

extension WidgetContextRules {
    /// The context of `widget`, which declares `traits`, at `location` on `device`.
    ///
    /// - Parameter hasContent: Whether a timeline of the widget is there to be shown.
    /// - Throws: The reason when there is no such context.
    public func environment(
        of widget: WidgetInfo, with traits: WidgetTraits, at location: WidgetLocation,
        on device: WidgetDevice, state: WidgetDeviceState = WidgetDeviceState(),
        hasContent: Bool = true
    ) throws(UnsupportedContext) -> WidgetEnvironment {
        let family = widget.family
        try check(family, with: traits, at: location, on: device)
        let isTintedRed = location == .standBy && state.isLowLight
        let mode = try renderingMode(of: family, at: location, on: device, state: state)
        let size = Self.layout(family, at: location, in: state.availableSize)
        return WidgetEnvironment(
            widgetFamily: family, location: location, platform: device.platform,
            widgetRenderingMode: mode,
            colorScheme: state.colorScheme,
            isLuminanceReduced: state.isAlwaysOn && alwaysOnLocations.contains(location),
            showsWidgetContainerBackground: showsBackground(
                family, traits, at: location, on: device, in: mode),
            displaySize: size.size, scale: size.scale, isTintedRed: isTintedRed,
            redactionReasons: presentation(
                of: widget.kind, with: traits, at: location, on: device.platform, state: state,
                hasContent: hasContent
            ).redactionReasons,
            interactionRefusal: interactionRefusal(
                for: family, at: location, on: device.platform, lock: state.lock))
    }

    /// Every context that `widget` can be in on `device`, which a provider builds for: location by
    /// location in the table's order, each in all its modes.
    public func environments(
        of widget: WidgetInfo, with traits: WidgetTraits, on device: WidgetDevice,
        state: WidgetDeviceState = WidgetDeviceState()
    ) -> [WidgetEnvironment] {
        var environments: [WidgetEnvironment] = []
        for place in WidgetContextTable.places[widget.family] ?? []
        where place.platform == device.platform {
            for mode in renderingModes(of: widget.family, at: place.location) {
                var state = state
                state.renderingMode = mode
                // StandBy in low light is one context, whatever mode is asked for.
                guard
                    let environment = try? environment(
                        of: widget, with: traits, at: place.location, on: device, state: state),
                    !environments.contains(environment)
                else { continue }
                environments.append(environment)
            }
        }
        return environments
    }

    private func renderingMode(
        of family: WidgetFamily, at location: WidgetLocation, on device: WidgetDevice,
        state: WidgetDeviceState
    ) throws(UnsupportedContext) -> WidgetRenderingMode {
        let own = renderingModes(of: family, at: location).first
        // Where no mode fits the family, any one gives the reason.
        let mode = state.renderingMode ?? own ?? .fullColor
        try check(family, at: location, on: device, in: mode)
        return location == .standBy && state.isLowLight ? lowLightRenderingMode : mode
    }

    private func showsBackground(
        _ family: WidgetFamily, _ traits: WidgetTraits, at location: WidgetLocation,
        on device: WidgetDevice, in mode: WidgetRenderingMode
    ) -> Bool {
        guard hasContainerBackgrounds(device) else {
            return switch device.platform {
            case .iOS, .iPadOS: !WidgetContextTable.isAccessory(family)
            case .watchOS, .macOS, .visionOS: true
            }
        }
        return !traits.isContainerBackgroundRemovable
            || !(backgroundlessLocations.contains(location) || backgroundlessModes.contains(mode))
    }

    /// StandBy and CarPlay show what was laid out for the Home Screen, larger or smaller. Source:
    /// "Update your small widget to support StandBy and CarPlay".
    private static func layout(
        _ family: WidgetFamily, at location: WidgetLocation, in space: CGSize?
    ) -> (size: CGSize, scale: Double) {
        let own = family.displaySize
        guard let space, space.width.isFinite, space.height.isFinite, space.width > 0,
            space.height > 0
        else { return (own, 1) }
        guard location == .standBy || location == .carPlay else { return (space, 1) }
        return (own, Double(min(space.width / own.width, space.height / own.height)))
    }
}

extension TimelineProviderContext {
    /// What a provider sees of the context: the family and the size to build for.
    public init(_ environment: WidgetEnvironment, isPreview: Bool = false) {
        self.init(
            family: environment.widgetFamily, isPreview: isPreview,
            displaySize: environment.displaySize)
    }
}
