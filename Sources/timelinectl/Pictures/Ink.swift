import TimelineRuntime

/// A color with its opacity, as a picture draws it.
struct Ink: Equatable {
    static let white = Ink(rgb: 0xFFFFFF)

    /// The color as 0xRRGGBB.
    var rgb: Int
    /// The opacity, 0 to 1.
    var opacity = 1.0

    func faded(_ share: Double) -> Ink { Ink(rgb: rgb, opacity: opacity * share) }

    /// Returns the attributes of SVG that paint with it: `fill`, `stroke` or `stop-color`.
    func attributes(_ name: String = "fill") -> String {
        let color = "\(name)=\"#\(String(rgb + 0x100_0000, radix: 16).dropFirst())\""
        guard opacity < 1 else { return color }
        return color + Picture.attributes(["\(name.prefix { $0 != "-" })-opacity": opacity])
    }

    /// The brightness that an eye sees, 0 to 1.
    var luminance: Double {
        func part(_ shift: Int) -> Double { Double((rgb >> shift) & 0xFF) / 255 }
        return 0.299 * part(16) + 0.587 * part(8) + 0.114 * part(0)
    }
}

extension Ink {
    /// Creates the ink of a color that has a name of the system or is `#RRGGBB`; `nil` for another.
    init?(_ color: Color, isDark: Bool) {
        let name = color.opaque.rawValue
        if let named = Self.named[name] {
            self.init(rgb: isDark ? named.dark : named.light, opacity: named.opacity * color.alpha)
        } else if name.hasPrefix("#"), name.utf8.count == 7,
            let number = UInt32(name.dropFirst(), radix: 16)
        {
            self.init(rgb: Int(number), opacity: color.alpha)
        } else {
            return nil
        }
    }

    private static let named: [String: (light: Int, dark: Int, opacity: Double)] = [
        "primary": (0, 0xFFFFFF, 1), "foreground": (0, 0xFFFFFF, 1), "clear": (0, 0, 0),
        "secondary": (0x3C3C43, 0xEBEBF5, 0.6), "tertiary": (0x3C3C43, 0xEBEBF5, 0.3),
        "quaternary": (0x3C3C43, 0xEBEBF5, 0.18), "separator": (0x3C3C43, 0xABABB0, 0.3),
        "background": (0xFFFFFF, 0x1C1C1E, 1), "fill": (0x787880, 0x787880, 0.2),
        "ultraThinMaterial": (0xF2F2F7, 0x2C2C2E, 0.4), "thinMaterial": (0xF2F2F7, 0x2C2C2E, 0.5),
        "regularMaterial": (0xF2F2F7, 0x2C2C2E, 0.7), "thickMaterial": (0xF2F2F7, 0x2C2C2E, 0.8),
        "accentColor": (0x007AFF, 0x0A84FF, 1), "white": (0xFFFFFF, 0xFFFFFF, 1),
        "black": (0, 0, 1), "gray": (0x8E8E93, 0x8E8E93, 1), "red": (0xFF3B30, 0xFF453A, 1),
        "orange": (0xFF9500, 0xFF9F0A, 1), "yellow": (0xFFCC00, 0xFFD60A, 1),
        "green": (0x34C759, 0x30D158, 1), "mint": (0x00C7BE, 0x66D4CF, 1),
        "teal": (0x30B0C7, 0x40C8E0, 1), "cyan": (0x32ADE6, 0x64D2FF, 1),
        "blue": (0x007AFF, 0x0A84FF, 1), "indigo": (0x5856D6, 0x5E5CE6, 1),
        "purple": (0xAF52DE, 0xBF5AF2, 1), "pink": (0xFF2D55, 0xFF375F, 1),
        "brown": (0xA2845E, 0xAC8E68, 1),
    ]
}

/// The colors of a widget in its context: the effects of the rendering modes (article "Preparing
/// widgets for additional platforms, contexts, and appearances").
extension PictureLayout {
    private var isOnBlack: Bool {
        [.standBy, .carPlay, .watchFace, .smartStack].contains(environment.location)
    }

    /// Whether content is light on a dark ground.
    private var isDark: Bool {
        environment.colorScheme == .dark || environment.widgetRenderingMode != .fullColor
            || isOnBlack
    }

    /// Whether views keep their own colors.
    var hasOwnColors: Bool {
        environment.widgetRenderingMode == .fullColor && !environment.isTintedRed
    }

    /// Returns the ink that the system shows for a color of the app. One that only the app's
    /// resources define is always the same for its name.
    func ink(_ color: Color, _ look: Look) -> Ink {
        let isTint = color.opaque.rawValue == "tint"
        let color = isTint ? (look.style.tint ?? .accentColor).opacity(color.alpha) : color
        let hash = Int(truncatingIfNeeded: FNV1a(Array(color.opaque.rawValue.utf8)).value)
        let invented = Ink(rgb: (hash & 0x7F7F7F) + 0x404040, opacity: color.alpha)
        let own = Ink(color, isDark: isDark) ?? invented
        // In one color, strength follows the brightness.
        let strength = own.opacity * (0.4 + 0.6 * own.luminance)
        // The one color of StandBy in low light.
        if environment.isTintedRed { return Ink(rgb: 0xFF3B30, opacity: strength) }
        switch environment.widgetRenderingMode {
        case .fullColor: return own
        case .vibrant: return Ink(rgb: (settings.tint ?? .white).rgb, opacity: strength)
        case .accented:
            let stated = look.style.text(.accentedRendering)
            if stated == "fullColor" { return own }
            let isAccented = stated.map { $0.hasPrefix("accented") } ?? look.isAccented
            let group = isAccented ? settings.tint ?? Ink(rgb: 0x0A84FF) : .white
            return Ink(rgb: group.rgb, opacity: own.opacity)
        }
    }

    /// The ground that the system puts behind the content; `nil` where there is none.
    var plate: Ink? {
        guard !environment.widgetFamily.rawValue.hasPrefix("accessory"),
            ![.standBy, .carPlay].contains(environment.location)
        else { return nil }
        if environment.location == .dynamicIsland { return Ink(rgb: 0) }
        guard environment.widgetRenderingMode == .fullColor,
            environment.showsWidgetContainerBackground
        else { return Ink.white.faded(0.18) }
        return isDark ? Ink(rgb: 0x1C1C1E) : .white
    }

    var backdrop: Ink {
        if isOnBlack { return Ink(rgb: 0) }
        if environment.location == .lockScreen { return Ink(rgb: 0x3A4A63) }
        return Ink(rgb: isDark ? 0x2C3648 : 0xA9B8CC)
    }
}
