import Foundation
import WidgetModel
import WidgetViews

/// The client and the placed widgets of an archive, for a reader that knows only its directory.
extension ClientArchive {
    /// The owner of an archive, and the widgets placed there.
    public struct Client: Sendable, Equatable {
        /// The app's bundle id.
        public var app: String
        /// The client's id.
        public var client: String
        /// The device; `nil` before the first registration, and for a platform without widgets.
        public var device: WidgetDevice?
        /// The placed widgets in the order of their registration; those not registered yet come
        /// last.
        public var widgets: [PlacedWidget]
    }

    /// A placed widget.
    public struct PlacedWidget: Sendable, Equatable {
        /// The widget with the configuration that a person chose.
        public var widget: WidgetInfo
        /// The number of times it is placed.
        public var count: Int
        /// Whether its timeline must be rebuilt, according to the archive. Notifications that
        /// arrived since the last save are not included.
        public var isStale: Bool

        package init(_ widget: WidgetInfo, count: Int = 1, isStale: Bool = false) {
            (self.widget, self.count, self.isStale) = (widget, count, isStale)
        }
    }

    /// Returns the owner and the placed widgets; `nil` when there is no readable archive.
    public func client() -> Client? {
        guard let document = document(statePath).flatMap({ StateDocument($0) }) else {
            return nil
        }
        let owner = document.owner.split(separator: " ", omittingEmptySubsequences: false)
        guard owner.count == 2 else { return nil }
        let registered = document.state.registered
        var counts: [WidgetInfo: Int] = [:]
        var order: [WidgetInfo] = []
        for widget in registered?.widgets ?? [] {
            let info = WidgetInfo(widget)
            // A widget that was removed has no files, although the gateway may still list it.
            guard hasTimeline(of: info) || hasPlaceholder(of: info) else { continue }
            if counts.updateValue(widget.count, forKey: info) == nil { order.append(info) }
        }
        for info in placeholderWidgets where counts[info] == nil {
            counts[info] = 1
            order.append(info)
        }
        let appearance = document.appearance.split(separator: " ")
        let platform = registered.flatMap { WidgetDevice.Platform(rawValue: $0.platform) }
        return Client(
            app: String(owner[0]), client: String(owner[1]),
            device: platform.map {
                WidgetDevice(
                    $0, osVersion: registered?.osVersion,
                    locale: Locale(identifier: appearance.first.map(String.init) ?? "en"),
                    dynamicTypeSize: appearance.last.flatMap {
                        DynamicTypeSize(rawValue: String($0))
                    } ?? .large)
            },
            widgets: order.map {
                PlacedWidget($0, count: counts[$0] ?? 1, isStale: Self.isStale($0, document.state))
            })
    }

    /// Returns whether a timeline must be rebuilt: the cursor of a fresh timeline advances with the
    /// client's cursor, that of a stale one stays behind.
    private static func isStale(_ widget: WidgetInfo, _ state: EngineState) -> Bool {
        guard let position = state.positions[.timeline(widget)] else { return true }
        return position.awaitsBuild || state.position.map { position.cursor < $0 } ?? false
    }
}
