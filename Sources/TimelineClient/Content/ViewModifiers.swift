import Foundation

/// Where a background belongs.
public enum ContainerBackgroundPlacement: Sendable, Hashable {
    /// Behind a widget.
    case widget
}

extension View {
    /// Hides the view where people hide what is sensitive.
    public func privacySensitive(_ isSensitive: Bool = true) -> some View {
        MarkedView(content: self, mark: isSensitive ? .privacySensitive : [])
    }

    /// Hides the view for a reason of the app's own: all of it as a placeholder, or what is marked as
    /// sensitive. The views in it see the reason in their environment, and may show something else
    /// (article "Creating a widget extension", "Hide sensitive content").
    public func redacted(reason: RedactionReasons) -> some View {
        RedactedView(content: self, reason: reason)
    }

    /// Never hides the view, whatever surrounds it.
    public func unredacted() -> some View { MarkedView(content: self, mark: .unredacted) }

    /// Puts the view into the group that has the accent's colour.
    public func widgetAccentable(_ isAccentable: Bool = true) -> some View {
        MarkedView(content: self, mark: isAccentable ? .accentable : [])
    }

    /// Lets the view look as if it waits after an interaction, until the next timeline.
    public func invalidatableContent(_ isInvalidatable: Bool = true) -> some View {
        MarkedView(content: self, mark: isInvalidatable ? .invalidatable : [])
    }

    /// Puts a background behind the view, which the system may take away.
    public func containerBackground(
        for placement: ContainerBackgroundPlacement, @ViewBuilder content: () -> some View
    ) -> some View {
        ZStack {
            MarkedView(content: content(), mark: .containerBackground)
            self
        }
    }

    /// What the app opens when the widget is tapped.
    public func widgetURL(_ url: URL?) -> some View {
        LinkedView(content: self, url: url?.absoluteString)
    }
}

/// A view with a mark.
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

/// A view that is hidden, wholly or in part.
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

/// A view with a URL.
private struct LinkedView<Content: View>: PrimitiveView {
    let content: Content
    let url: String?

    var nodes: [WidgetNode] {
        var node = content.drawnAsOne
        node.widgetURL = url
        return [node]
    }
}
