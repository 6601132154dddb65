import Foundation

/// The color scheme: light or dark.
public enum ColorScheme: String, Sendable, Hashable, CaseIterable {
    /// Dark content on a light background.
    case light
    /// Light content on a dark background.
    case dark
}

/// The device's current state, as far as it affects the appearance of widgets.
public struct WidgetDeviceState: Sendable, Hashable {
    /// Whether the device is locked. For ``WidgetLocation/iPhoneWidgetsOnMac``, the iPhone.
    public var lock: DeviceLock
    /// Whether the display is in its Always On state. Source: "Support Always On".
    public var isAlwaysOn: Bool
    /// Whether the environment is dark, as reported by the light sensor.
    public var isLowLight: Bool
    /// The color scheme: light or dark.
    public var colorScheme: ColorScheme
    /// The rendering mode chosen by the person or the watch face; `nil` for the location's default.
    public var renderingMode: WidgetRenderingMode?
    /// The space for the widget, in points; `nil`, or anything but a finite positive size, when no
    /// screen limits it.
    public var availableSize: CGSize?
    /// The settings that decide where sensitive content is hidden.
    public var sensitiveContent: SensitiveContentSettings
    /// The amount of detail: less where the person is far away.
    public var levelOfDetail = LevelOfDetail.default

    /// Creates a state. The default is an unlocked device in daylight.
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

/// The context in which a widget is shown, as its content sees it. Created only by
/// ``WidgetContextRules/environment(of:with:at:on:state:hasContent:)``, so that it is always a
/// context that exists.
public struct WidgetEnvironment: Sendable, Hashable {
    /// The family of the widget.
    public let widgetFamily: WidgetFamily
    /// The location of the widget.
    public let location: WidgetLocation
    /// The platform whose font metrics apply. It is the iPhone's also where a Mac shows the
    /// iPhone's widget. Source: "Verify font sizes in macOS".
    public let platform: WidgetDevice.Platform
    /// The rendering mode of the widget.
    public let widgetRenderingMode: WidgetRenderingMode
    /// The color scheme: light or dark.
    public var colorScheme: ColorScheme
    /// Whether the widget is shown in Always On, with reduced luminance.
    public var isLuminanceReduced: Bool
    /// The locale of texts and formats.
    public var locale: Locale
    /// The size of texts that the person chose.
    public var dynamicTypeSize: DynamicTypeSize
    /// The amount of detail, by the person's distance.
    public var levelOfDetail: LevelOfDetail
    /// Whether the widget's background is shown; `false` where the system removes it.
    public let showsWidgetContainerBackground: Bool
    /// The layout size of the content, in points.
    public let displaySize: CGSize
    /// The magnification of the content relative to `displaySize`; 1 except in StandBy and
    /// CarPlay, which scale small widgets.
    public let scale: Double
    /// Whether everything is tinted red, as StandBy does in low light.
    public let isTintedRed: Bool
    /// The reasons why content must not be recognizable.
    public var redactionReasons: RedactionReasons
    /// The reason why buttons and toggles are inactive; `nil` when they work.
    public let interactionRefusal: InteractionRefusal?
    /// The values that an app added, which are the same in all contexts until a view sets one.
    var own = Uncompared<[ObjectIdentifier: any Sendable]>(value: [:])

    /// Whether buttons and toggles work.
    public var isInteractive: Bool { interactionRefusal == nil }

    /// Whether a watch face shows the label of an accessory widget.
    public var showsWidgetLabel: Bool {
        location == .watchFace
            && [.accessoryCircular, .accessoryCorner].contains(widgetFamily)
    }
}

/// The size of texts that a person chose, from the smallest to the largest.
public enum DynamicTypeSize: String, Sendable, Hashable, CaseIterable, Comparable {
    /// The platform's names for the sizes.
    case xSmall, small, medium, large, xLarge, xxLarge, xxxLarge, accessibility1, accessibility2,
        accessibility3, accessibility4, accessibility5

    /// Whether the size is one of those that need another layout.
    public var isAccessibilitySize: Bool { self >= .accessibility1 }

    /// Returns whether a size is smaller than another one.
    public static func < (left: Self, right: Self) -> Bool {
        (allCases.firstIndex(of: left) ?? 0) < (allCases.firstIndex(of: right) ?? 0)
    }
}

/// The amount of detail in a widget, which depends on the person's distance.
public enum LevelOfDetail: Sendable, Hashable {
    /// Everything.
    case `default`
    /// Only content that can be recognized from far away.
    case simplified
}

extension WidgetContextRules {
    /// Returns the context of `widget`, which declares `traits`, at `location` on `device`.
    ///
    /// - Parameter hasContent: Whether a timeline of the widget can be shown.
    /// - Throws: The reason when no such context exists.
    public func environment(
        of widget: WidgetInfo, with traits: WidgetTraits, at location: WidgetLocation,
        on device: WidgetDevice, state: WidgetDeviceState = WidgetDeviceState(),
        hasContent: Bool = true
    ) throws(UnsupportedContext) -> WidgetEnvironment {
        let family = widget.family
        try check(family, with: traits, at: location, on: device)
        let isTintedRed = location == .standBy && state.isLowLight
        let mode = try renderingMode(of: family, at: location, on: device, state: state)
        let size = Self.layout(
            family, at: location, in: state.availableSize ?? availableSizes[location]?[family])
        return WidgetEnvironment(
            widgetFamily: family, location: location, platform: device.platform,
            widgetRenderingMode: mode,
            colorScheme: state.colorScheme,
            isLuminanceReduced: state.isAlwaysOn && alwaysOnLocations.contains(location),
            locale: device.locale, dynamicTypeSize: device.dynamicTypeSize,
            levelOfDetail: location == .surface ? state.levelOfDetail : .default,
            showsWidgetContainerBackground: showsBackground(
                family, traits, at: location, on: device, in: mode),
            displaySize: size.size, scale: size.scale, isTintedRed: isTintedRed,
            redactionReasons: presentation(
                of: widget.kind, with: traits, at: location, on: device.platform, state: state,
                hasContent: hasContent
            ).redactionReasons,
            interactionRefusal: interactionRefusal(
                for: family, on: device.platform, lock: state.lock))
    }

    /// Returns every context of `widget` on `device`, which a provider must build for: the
    /// locations in the table's order, each in all its modes. A presentation of a Live Activity has
    /// one context, or none.
    public func environments(
        of widget: WidgetInfo, with traits: WidgetTraits, on device: WidgetDevice,
        state: WidgetDeviceState = WidgetDeviceState()
    ) -> [WidgetEnvironment] {
        if let presentation = widget.activityPresentation {
            return [environment(of: presentation, on: device, state: state)].compactMap(\.self)
        }
        var environments: [WidgetEnvironment] = []
        for place in WidgetContextTable.places[widget.family] ?? []
        where place.platform == device.platform {
            for mode in renderingModes(of: widget.family, at: place.location) {
                var state = state
                state.renderingMode = mode
                // StandBy in low light is a single context, whatever mode is requested.
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
        // Where the family has no mode at all, the check of any mode throws the reason.
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

    /// Returns the layout size and the scale. StandBy and CarPlay scale the layout for the Home
    /// Screen. Source: "Update your small widget to support StandBy and CarPlay".
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
    /// Creates the provider's part of an environment: the family and the size to build for.
    public init(_ environment: WidgetEnvironment, isPreview: Bool = false) {
        self.init(
            family: environment.widgetFamily, isPreview: isPreview,
            displaySize: environment.displaySize)
    }
}
