import WidgetModel

/// The device that builds and shows widgets. For ``WidgetLocation/carPlay`` and
/// ``WidgetLocation/iPhoneWidgetsOnMac`` it is the iPhone.
public struct WidgetDevice: Sendable, Hashable {
    /// A platform with widgets; the raw value is the name that registrations and catalogs use.
    public enum Platform: String, Sendable, Hashable, CaseIterable {
        /// iPhone.
        case iOS
        /// iPad.
        case iPadOS
        /// Apple Watch.
        case watchOS
        /// Mac.
        case macOS
        /// Apple Vision Pro.
        case visionOS

        /// The device as a sentence calls it.
        var deviceName: String {
            switch self {
            case .iOS: "iPhone"
            case .iPadOS: "iPad"
            case .watchOS: "Apple Watch"
            case .macOS: "Mac"
            case .visionOS: "Apple Vision Pro"
            }
        }
    }

    /// The platform.
    public var platform: Platform
    /// The system's version; `nil` when unknown, which counts as the newest.
    public var osVersion: OSVersion?

    /// A device.
    public init(_ platform: Platform, osVersion: OSVersion? = nil) {
        self.platform = platform
        self.osVersion = osVersion
    }

    /// Whether the system is of this major version or newer.
    func has(major: Int) -> Bool {
        guard let osVersion else { return true }
        return (osVersion.parts.first ?? 0) >= major
    }
}
