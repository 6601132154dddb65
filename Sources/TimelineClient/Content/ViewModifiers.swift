import Foundation

/// The part of a widget that a background belongs to.
public enum ContainerBackgroundPlacement: Sendable, Hashable {
    /// The background of the whole widget.
    case widget
}

extension View {
    /// Hides the view where people hide sensitive content.
    public func privacySensitive(_ isSensitive: Bool = true) -> some View {
        MarkedView(content: self, mark: isSensitive ? .privacySensitive : [])
    }

    /// Redacts the view for a reason that the app chooses: all of it as a placeholder, or the parts
    /// marked as sensitive. The views in it see the reason in their environment, and may show
    /// something else (article "Creating a widget extension", "Hide sensitive content").
    public func redacted(reason: RedactionReasons) -> some View {
        RedactedView(content: self, reason: reason)
    }

    /// Exempts the view from redaction, whatever surrounds it.
    public func unredacted() -> some View { MarkedView(content: self, mark: .unredacted) }

    /// Puts the view into the accented group.
    public func widgetAccentable(_ isAccentable: Bool = true) -> some View {
        MarkedView(content: self, mark: isAccentable ? .accentable : [])
    }

    /// Marks the view to look pending after an interaction, until the next timeline arrives.
    public func invalidatableContent(_ isInvalidatable: Bool = true) -> some View {
        MarkedView(content: self, mark: isInvalidatable ? .invalidatable : [])
    }

    /// Puts a background behind the view. The system may remove it.
    public func containerBackground(
        for placement: ContainerBackgroundPlacement, @ViewBuilder content: () -> some View
    ) -> some View {
        ZStack {
            MarkedView(content: content(), mark: .containerBackground)
            self
        }
    }

    /// Sets the URL that the app opens when the widget is tapped.
    public func widgetURL(_ url: URL?) -> some View {
        LinkedView(content: self, url: url?.absoluteString)
    }
}

private struct MarkedView<Content: View>: PrimitiveView {
    let content: Content
    let mark: WidgetNode.Marks

    var nodes: [WidgetNode] {
        content.drawn.map { node in
            var node = node
            node.marks.formUnion(mark)
            return node
        }
    }
}

/// A view that is redacted, wholly or in part.
private struct RedactedView<Content: View>: PrimitiveView {
    let content: Content
    let reason: RedactionReasons

    var nodes: [WidgetNode] {
        var environment = WidgetEnvironment.drawn
        environment?.redactionReasons.formUnion(reason)
        return WidgetEnvironment.$drawn.withValue(environment) {
            content.drawn.map { $0.redacted(for: reason) }
        }
    }
}

/// A view with a URL to open.
private struct LinkedView<Content: View>: PrimitiveView {
    let content: Content
    let url: String?

    var nodes: [WidgetNode] {
        var node = content.drawnAsOne
        node.widgetURL = url
        return [node]
    }
}
