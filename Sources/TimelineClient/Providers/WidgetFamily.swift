import Foundation

/// A widget's size and shape. The set is open: a family this version does not know is a string
/// like any other.
public struct WidgetFamily: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// WidgetKit's name.
    public let rawValue: String

    /// The family called `rawValue`.
    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    /// Small square.
    public static let systemSmall = WidgetFamily(rawValue: "systemSmall")
    /// As wide as two small ones.
    public static let systemMedium = WidgetFamily(rawValue: "systemMedium")
    /// Two small ones wide and high.
    public static let systemLarge = WidgetFamily(rawValue: "systemLarge")
    /// Wider than large.
    public static let systemExtraLarge = WidgetFamily(rawValue: "systemExtraLarge")
    /// Higher than large.
    public static let systemExtraLargePortrait = WidgetFamily(rawValue: "systemExtraLargePortrait")
    /// Round, on Lock Screens and watch faces.
    public static let accessoryCircular = WidgetFamily(rawValue: "accessoryCircular")
    /// Rectangular, on Lock Screens, watch faces and in Smart Stacks.
    public static let accessoryRectangular = WidgetFamily(rawValue: "accessoryRectangular")
    /// One line of text.
    public static let accessoryInline = WidgetFamily(rawValue: "accessoryInline")
    /// In the corner of a watch face.
    public static let accessoryCorner = WidgetFamily(rawValue: "accessoryCorner")

    /// WidgetKit's name.
    public var description: String { rawValue }

    /// A size in points to build for where no screen dictates one.
    public var displaySize: CGSize {
        switch self {
        case .systemMedium: CGSize(width: 338, height: 158)
        case .systemLarge: CGSize(width: 338, height: 354)
        case .systemExtraLarge: CGSize(width: 715, height: 354)
        case .systemExtraLargePortrait: CGSize(width: 354, height: 715)
        case .accessoryCircular, .accessoryCorner: CGSize(width: 76, height: 76)
        case .accessoryRectangular: CGSize(width: 172, height: 76)
        case .accessoryInline: CGSize(width: 257, height: 26)
        default: CGSize(width: 158, height: 158)
        }
    }
}
