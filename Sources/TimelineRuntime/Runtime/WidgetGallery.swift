import WidgetViews

/// The widgets that people can add at one location. Source: "Indicate that a widget might not fit a
/// specific context".
public struct WidgetGallery<Widget> {
    /// A widget with the families in which it is offered.
    public struct Offer {
        /// The widget.
        public let widget: Widget
        /// The families in the widget's order; never empty.
        public let families: [WidgetFamily]
    }

    /// The widgets that the system suggests.
    public let suggested: [Offer]
    /// The widgets that are also available, although their developer declared that they do not fit
    /// well.
    public let other: [Offer]
}

extension WidgetContextRules {
    /// Returns the gallery of `location` on `device`, in the order of `widgets`. A widget with some
    /// disfavored families appears in both parts; one without an available family in neither.
    public func gallery<Widget>(
        of widgets: [Widget], at location: WidgetLocation, on device: WidgetDevice,
        traits: (Widget) -> WidgetTraits
    ) -> WidgetGallery<Widget> {
        var suggested: [WidgetGallery<Widget>.Offer] = []
        var other: [WidgetGallery<Widget>.Offer] = []
        for widget in widgets {
            let traits = traits(widget)
            let available = (traits.supportedFamilies ?? WidgetFamily.allCases).filter { family in
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
