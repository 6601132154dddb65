import Foundation

/// The place of a region in the expanded Dynamic Island: at an end of the line beside the camera,
/// below the camera, or below all others.
public enum DynamicIslandExpandedRegionPosition: Sendable, Hashable {
    case leading, trailing, center, bottom
}

extension View {
    fileprivate var erased: DrawnView { DrawnView { self.drawn } }

    fileprivate func part(_ margin: Double = 0) -> DrawnView {
        let whole = DrawnView { [self.drawnAsOne] }
        return margin == 0 ? whole : whole.padding(margin).erased
    }
}

/// A region of the expanded Dynamic Island.
public struct DynamicIslandExpandedRegion<Content: View> {
    fileprivate let position: DynamicIslandExpandedRegionPosition
    private let priority: Double
    private let content: Content

    /// Creates a region. That with the highest priority gets its space first.
    public init(
        _ position: DynamicIslandExpandedRegionPosition, priority: Double = 0,
        @ViewBuilder content: () -> Content
    ) {
        (self.position, self.priority, self.content) = (position, priority, content())
    }

    fileprivate var view: DrawnView {
        let part = content.part()
        return priority == 0 ? part : part.layoutPriority(priority).erased
    }
}

/// The regions of the expanded Dynamic Island.
public struct DynamicIslandExpandedContent<Content: View> {
    fileprivate var regions: [DynamicIslandExpandedRegionPosition: DrawnView]
}

/// Combines the regions of the expanded Dynamic Island.
@resultBuilder
public enum DynamicIslandExpandedContentBuilder {
    /// Returns a region as content.
    public static func buildExpression<Content: View>(
        _ region: DynamicIslandExpandedRegion<Content>
    ) -> DynamicIslandExpandedContent<DrawnView> {
        DynamicIslandExpandedContent(regions: [region.position: region.view])
    }

    /// Returns all regions. Of several for one position, the last counts.
    public static func buildBlock(
        _ parts: DynamicIslandExpandedContent<DrawnView>...
    ) -> DynamicIslandExpandedContent<DrawnView> {
        var whole = DynamicIslandExpandedContent<DrawnView>(regions: [:])
        for part in parts { whole.regions.merge(part.regions) { $1 } }
        return whole
    }
}

/// A Live Activity in the Dynamic Island.
public struct DynamicIsland {
    private let regions: () -> [DynamicIslandExpandedRegionPosition: DrawnView]
    private let compact: (leading: DrawnView, trailing: DrawnView)
    private let minimal: DrawnView
    private var keyline: Color?
    private var url: URL?

    /// Creates the presentations of the island.
    public init<Expanded: View, CompactLeading: View, CompactTrailing: View, Minimal: View>(
        @DynamicIslandExpandedContentBuilder
        expanded: @escaping () -> DynamicIslandExpandedContent<Expanded>,
        @ViewBuilder compactLeading: @escaping () -> CompactLeading,
        @ViewBuilder compactTrailing: @escaping () -> CompactTrailing,
        @ViewBuilder minimal: @escaping () -> Minimal
    ) {
        regions = { expanded().regions }
        compact = (DrawnView { compactLeading().drawn }, DrawnView { compactTrailing().drawn })
        self.minimal = DrawnView { minimal().drawn }
    }

    /// Tints the line around the island; `nil` for none.
    public func keylineTint(_ color: Color?) -> DynamicIsland { with { $0.keyline = color } }

    /// Sets the URL that the app opens when the island is tapped.
    public func widgetURL(_ url: URL?) -> DynamicIsland { with { $0.url = url } }

    private func with(_ change: (inout DynamicIsland) -> Void) -> DynamicIsland {
        var island = self
        change(&island)
        return island
    }

    /// Returns a presentation of the island as one view: its content in all of its space, with the
    /// keyline around it.
    package func view(of presentation: ActivityPresentation) -> DrawnView {
        let shown = content(of: presentation)
        var view = shown.frame(maxWidth: .infinity, maxHeight: .infinity).erased
        if let keyline {
            view = view.overlay { ContainerRelativeShape().strokeBorder(keyline) }.erased
        }
        return url == nil ? view : view.widgetURL(url).erased
    }

    /// The margins are this library's choice.
    private func content(of presentation: ActivityPresentation) -> DrawnView {
        switch presentation {
        case .lockScreen, .expanded:
            let parts = regions()
            return VStack {
                HStack(alignment: .top) {
                    parts[.leading]
                    Spacer()
                    parts[.center]
                    Spacer()
                    parts[.trailing]
                }
                parts[.bottom]
            }
            .part(16)
        case .compact:
            return HStack {
                compact.leading.part(4)
                Spacer()
                compact.trailing.part(4)
            }
            .erased
        case .minimal: return minimal.part(4)
        }
    }
}

extension View {
    /// Sets the color behind a Live Activity on the Lock Screen; `nil` for the system's.
    public func activityBackgroundTint(_ color: Color?) -> some View {
        color.map { containerBackground($0, for: .widget).erased } ?? erased
    }

    /// Accepts the color of the system's button beside a Live Activity. None is shown here.
    public func activitySystemActionForegroundColor(_ color: Color?) -> some View { self }
}
