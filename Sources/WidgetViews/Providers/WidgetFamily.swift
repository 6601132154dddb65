import Foundation

/// A widget's size and shape. The set is open: an unknown family is valid too.
///
/// Therefore a `switch` needs a `default`, as it needs one for WidgetKit's families, of which a
/// newer system may have more.
public struct WidgetFamily: RawRepresentable, Sendable, Hashable, CaseIterable,
    CustomStringConvertible
{
    /// The name in WidgetKit.
    public let rawValue: String

    /// Creates a family from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// A small square.
    public static let systemSmall = WidgetFamily(rawValue: "systemSmall")
    /// A rectangle with the width of two small widgets.
    public static let systemMedium = WidgetFamily(rawValue: "systemMedium")
    /// A square with the width and height of two small widgets.
    public static let systemLarge = WidgetFamily(rawValue: "systemLarge")
    /// A rectangle wider than the large family.
    public static let systemExtraLarge = WidgetFamily(rawValue: "systemExtraLarge")
    /// A rectangle higher than the large family.
    public static let systemExtraLargePortrait = WidgetFamily(rawValue: "systemExtraLargePortrait")
    /// A circle on Lock Screens and watch faces.
    public static let accessoryCircular = WidgetFamily(rawValue: "accessoryCircular")
    /// A rectangle on Lock Screens, watch faces and in Smart Stacks.
    public static let accessoryRectangular = WidgetFamily(rawValue: "accessoryRectangular")
    /// A single line of text.
    public static let accessoryInline = WidgetFamily(rawValue: "accessoryInline")
    /// A shape in the corner of a watch face.
    public static let accessoryCorner = WidgetFamily(rawValue: "accessoryCorner")

    /// The families that the tables list, in the order of a gallery.
    public static let allCases: [WidgetFamily] = [
        .systemSmall, .systemMedium, .systemLarge, .systemExtraLarge, .systemExtraLargePortrait,
        .accessoryCircular, .accessoryRectangular, .accessoryInline, .accessoryCorner,
    ]

    /// The name in WidgetKit.
    public var description: String { rawValue }

    /// The layout size in points to use where no screen defines one.
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
