/// What people can add at one location. Source: "Indicate that a widget might not fit a specific
/// context".
public struct WidgetGallery<Widget> {
    /// A widget, and the families in which it is offered.
    public struct Offer {
        /// The widget.
        public let widget: Widget
        /// The families, in the widget's order; never empty.
        public let families: [WidgetFamily]
    }

    /// What the system suggests.
    public let suggested: [Offer]
    /// What is available too, though its developer thinks that it does not fit.
    public let other: [Offer]
}

extension WidgetGallery: Sendable where Widget: Sendable {}
extension WidgetGallery.Offer: Sendable where Widget: Sendable {}
extension WidgetGallery: Equatable where Widget: Equatable {}
extension WidgetGallery.Offer: Equatable where Widget: Equatable {}

extension WidgetContextRules {
    /// The families in the order of a gallery, for widgets that state none.
    static let galleryFamilies: [WidgetFamily] = [
        .systemSmall, .systemMedium, .systemLarge, .systemExtraLarge, .systemExtraLargePortrait,
        .accessoryCircular, .accessoryRectangular, .accessoryInline, .accessoryCorner,
    ]

    /// The gallery of `location` on `device`, in the order of `widgets`. A widget of which some
    /// families are disfavored there is in both parts; one that has no family there is in none.
    public func gallery<Widget>(
        of widgets: [Widget], at location: WidgetLocation, on device: WidgetDevice,
        traits: (Widget) -> WidgetTraits
    ) -> WidgetGallery<Widget> {
        var suggested: [WidgetGallery<Widget>.Offer] = []
        var other: [WidgetGallery<Widget>.Offer] = []
        for widget in widgets {
            let traits = traits(widget)
            let available = (traits.supportedFamilies ?? Self.galleryFamilies).filter { family in
                (try? check(family, with: traits, at: location, on: device)) != nil
            }
            let isDisfavored = { (family: WidgetFamily) in
                traits.disfavoredLocations[family]?.contains(location) ?? false
            }
            let fitting = available.filter { !isDisfavored($0) }
            let disfavored = available.filter(isDisfavored)
            if !fitting.isEmpty { suggested.append(.init(widget: widget, families: fitting)) }
            if !disfavored.isEmpty { other.append(.init(widget: widget, families: disfavored)) }
        }
        return WidgetGallery(suggested: suggested, other: other)
    }
}
