import Foundation

/// The part of a widget that a background belongs to.
public enum ContainerBackgroundPlacement: Sendable, Hashable {
    /// The background of the whole widget.
    case widget
}

extension View {
    /// Hides the view where people hide sensitive content.
    public func privacySensitive(_ isSensitive: Bool = true) -> some View {
        marked(isSensitive ? .privacySensitive : [])
    }

    /// Redacts the view for a reason that the app chooses: all of it as a placeholder, or the parts
    /// marked as sensitive. The views in it see the reason in their environment, and may show
    /// something else (article "Creating a widget extension", "Hide sensitive content").
    public func redacted(reason: RedactionReasons) -> some View {
        changed {
            $0 = $0.redacted(for: reason)
            if reason.contains(.invalidated) { $0.marks.insert(.invalidated) }
        }
        .inEnvironment { $0.redactionReasons.formUnion(reason) }
    }

    /// Exempts the view from redaction, whatever surrounds it.
    public func unredacted() -> some View { marked(.unredacted) }

    /// Puts the view into the accented group.
    public func widgetAccentable(_ isAccentable: Bool = true) -> some View {
        marked(isAccentable ? .accentable : [])
    }

    /// Marks the view to look pending after an interaction, until the next timeline arrives.
    public func invalidatableContent(_ isInvalidatable: Bool = true) -> some View {
        marked(isInvalidatable ? .invalidatable : [])
    }

    /// Puts a background behind the view. The system may remove it.
    public func containerBackground(
        for placement: ContainerBackgroundPlacement, @ViewBuilder content: () -> some View
    ) -> some View {
        ZStack {
            content().marked(.containerBackground)
            self
        }
    }

    /// Sets the URL that the app opens when the widget is tapped.
    public func widgetURL(_ url: URL?) -> some View {
        changed { $0.widgetURL = url?.absoluteString }
    }

    private func marked(_ mark: WidgetNode.Marks) -> some View {
        changed { $0.marks.formUnion(mark) }
    }
}
