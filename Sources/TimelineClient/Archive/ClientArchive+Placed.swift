import Foundation
import WidgetModel

/// What an archive says of its client, to somebody who knows its directory alone.
extension ClientArchive {
    /// Whose an archive is, and which widgets are placed there.
    public struct Client: Sendable, Equatable {
        /// The app's bundle id.
        public var app: String
        /// The client's id.
        public var client: String
        /// The device; `nil` before the first registration, and for a platform that shows no
        /// widgets.
        public var device: WidgetDevice?
        /// The placed widgets, in the order of their registration; those it does not have yet last.
        public var widgets: [PlacedWidget]
    }

    /// A placed widget.
    public struct PlacedWidget: Sendable, Equatable {
        /// As a person configured it.
        public var widget: WidgetInfo
        /// How often it is placed.
        public var count: Int
        /// Its timeline is to be built anew, as far as the archive knows: what the gateway said since
        /// the last save is not in it.
        public var isStale: Bool
    }

    /// Whose the archive is, and what is placed; `nil` where there is no archive that can be read.
    public func client() -> Client? {
        guard let document = document(statePath).flatMap({ ArchiveDocument($0) }) else {
            return nil
        }
        let owner = document.owner.split(separator: " ", omittingEmptySubsequences: false)
        guard owner.count == 2 else { return nil }
        let registered = document.state.registered
        var counts: [WidgetInfo: Int] = [:]
        var order: [WidgetInfo] = []
        for widget in registered?.widgets ?? [] {
            let info = WidgetInfo(widget)
            // One that is placed no more has no files, though the gateway may not know it yet.
            guard hasTimeline(of: info) || hasPlaceholder(of: info) else { continue }
            if counts.updateValue(widget.count, forKey: info) == nil { order.append(info) }
        }
        for info in placeholderWidgets where counts[info] == nil {
            counts[info] = 1
            order.append(info)
        }
        let platform = registered.flatMap { WidgetDevice.Platform(rawValue: $0.platform) }
        return Client(
            app: String(owner[0]), client: String(owner[1]),
            device: platform.map { WidgetDevice($0, osVersion: registered?.osVersion) },
            widgets: order.map {
                PlacedWidget(
                    widget: $0, count: counts[$0] ?? 1, isStale: Self.isStale($0, document.state))
            })
    }

    /// What is fresh goes along with what was heard; what is stale stays behind.
    private static func isStale(_ widget: WidgetInfo, _ state: EngineState) -> Bool {
        guard let position = state.positions[.timeline(widget)] else { return true }
        return position.awaitsBuild || state.position.map { position.cursor < $0 } ?? false
    }
}
