/// The reason why a widget does not appear in a context. The description is for display, and gives
/// the rule from the tables.
public enum UnsupportedContext: Error, Sendable, Hashable, CustomStringConvertible {
    /// The platform has no widgets of this family.
    case platform(WidgetFamily, WidgetDevice.Platform)
    /// The platform has widgets of this family, but not at this location.
    case location(WidgetFamily, WidgetLocation, WidgetDevice.Platform)
    /// The family needs a newer version of the system at this location.
    case version(WidgetFamily, WidgetLocation, since: Int, WidgetDevice)
    /// The family does not support this rendering mode anywhere.
    case renderingMode(WidgetFamily, WidgetRenderingMode)
    /// The location does not support this rendering mode.
    case renderingModeAtLocation(
        WidgetLocation, WidgetRenderingMode, allowed: [WidgetRenderingMode])
    /// The widget does not declare the family.
    case undeclared(WidgetFamily)
    /// The widget's background cannot be removed, but the location removes it.
    case backgroundNotRemovable(WidgetFamily, WidgetLocation)
    /// Widgets with this data protection are not shown on a Mac.
    case protectedFromMac(DataProtection)
    /// The family or location is unknown, and unknown names are not admitted.
    case unknownName(String)

    /// The reason, as a sentence without its full stop.
    public var description: String {
        switch self {
        case .platform(let family, let platform):
            "\(family) is for \(Self.uses(of: family)) only, not for \(platform.deviceName)"
        case .location(let family, let location, let platform):
            "on \(platform.deviceName), \(family) is for \(Self.uses(of: family, on: platform)) "
                + "only, not for \(location.phrase)"
        case .version(let family, let location, let since, let device):
            "\(family) needs \(device.platform.rawValue) \(since) for \(location.phrase)"
                + (device.osVersion.map { "; this is \(device.platform.rawValue) \($0)" } ?? "")
        case .renderingMode(let family, let mode):
            "\(family) has no \(mode.phrase) rendering"
        case .renderingModeAtLocation(let location, let mode, let allowed):
            "widgets for \(location.phrase) have \(Self.list(allowed.map(\.phrase))) rendering "
                + "only, no \(mode.phrase) rendering"
        case .undeclared(let family):
            "the widget does not declare \(family)"
        case .backgroundNotRemovable(let family, let location):
            "\(family) for \(location.phrase) needs a background that can be removed"
        case .protectedFromMac(let protection):
            "widgets with \(protection.rawValue) are not available as iPhone widgets on Mac"
        case .unknownName(let name):
            "\(name) is not a family or location known to this version"
        }
    }

    /// Returns the location of a family that has only one, or otherwise its devices.
    private static func uses(of family: WidgetFamily) -> String {
        let places = WidgetContextTable.places[family] ?? []
        let locations = unique(places.map(\.location.phrase))
        return list(
            locations.count == 1 ? locations : unique(places.map(\.platform.deviceName)))
    }

    private static func uses(of family: WidgetFamily, on platform: WidgetDevice.Platform) -> String
    {
        let places = WidgetContextTable.places[family] ?? []
        return list(unique(places.filter { $0.platform == platform }.map(\.location.phrase)))
    }

    private static func unique(_ names: [String]) -> [String] {
        names.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    private static func list(_ names: [String]) -> String {
        names.count < 2
            ? names.joined()
            : names.dropLast().joined(separator: ", ") + " and " + names.suffix(1).joined()
    }
}
