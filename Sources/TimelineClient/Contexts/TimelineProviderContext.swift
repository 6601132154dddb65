import Foundation

/// The context in which a provider builds a widget.
public struct TimelineProviderContext: Sendable, Hashable {
    /// The widget's family.
    public var family: WidgetFamily
    /// Whether the entry is for a gallery: the provider must answer quickly and may return sample
    /// data.
    public var isPreview: Bool
    /// The widget's size, in points.
    public var displaySize: CGSize

    /// Creates a context.
    ///
    /// - Parameter displaySize: The widget's size in points; `nil` for the size of the family.
    public init(family: WidgetFamily, isPreview: Bool = false, displaySize: CGSize? = nil) {
        self.family = family
        self.isPreview = isPreview
        self.displaySize = displaySize ?? family.displaySize
    }
}
