import Foundation
import WidgetModel

/// The device that builds and shows widgets. For ``WidgetLocation/carPlay`` and
/// ``WidgetLocation/iPhoneWidgetsOnMac`` it is the iPhone.
public struct WidgetDevice: Sendable, Hashable {
    /// A platform with widgets. The raw value is the name in registrations and catalogs.
    public enum Platform: String, Sendable, Hashable, CaseIterable {
        /// iPhone, iPad, Apple Watch, Mac and Apple Vision Pro.
        case iOS, iPadOS, watchOS, macOS, visionOS

        /// The device's name as it appears in sentences.
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
    /// The system's version; `nil` if unknown, which counts as the newest.
    public var osVersion: OSVersion?

    /// The person's locale, in which widgets are drawn.
    public var locale: Locale
    /// The size of texts that the person chose.
    public var dynamicTypeSize: DynamicTypeSize

    /// Creates a device.
    public init(
        _ platform: Platform, osVersion: OSVersion? = nil,
        locale: Locale = Locale(identifier: "en"), dynamicTypeSize: DynamicTypeSize = .large
    ) {
        self.platform = platform
        self.osVersion = osVersion
        self.locale = locale
        self.dynamicTypeSize = dynamicTypeSize
    }

    /// Returns whether the system has this major version or a newer one.
    package func has(major: Int) -> Bool {
        guard let osVersion else { return true }
        return (osVersion.parts.first ?? 0) >= major
    }
}
