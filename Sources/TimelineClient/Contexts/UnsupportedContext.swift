import WidgetModel

/// Why a widget does not appear in a context. The description is for people and gives the reason
/// that the tables have.
public enum UnsupportedContext: Error, Sendable, Hashable, CustomStringConvertible {
    /// The platform has no widgets of this family.
    case platform(WidgetFamily, WidgetDevice.Platform)
    /// The platform has widgets of this family, but not there.
    case location(WidgetFamily, WidgetLocation, WidgetDevice.Platform)
    /// They are there from a newer system on.
    case version(WidgetFamily, WidgetLocation, since: Int, WidgetDevice)
    /// The family is not rendered like that anywhere.
    case renderingMode(WidgetFamily, WidgetRenderingMode)
    /// Nothing is rendered like that there.
    case renderingModeAtLocation(
        WidgetLocation, WidgetRenderingMode, allowed: [WidgetRenderingMode])
    /// The widget does not declare the family.
    case undeclared(WidgetFamily)
    /// The widget insists on its background, which the location removes.
    case backgroundNotRemovable(WidgetFamily, WidgetLocation)
    /// Data protected like that is not for a Mac.
    case protectedFromMac(DataProtection)
    /// A family or location in no table, where such are not admitted.
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

    /// The one location of a family that has no other, else its devices.
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
