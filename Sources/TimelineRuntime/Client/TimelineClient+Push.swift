import Foundation
import WidgetViews

extension TimelineClient {
    /// The token for pushes to this client's widgets; `nil` while there is no token, or no widget
    /// that accepts pushes.
    public var currentPushInfo: WidgetPushInfo? { pushInfo }

    /// Stores the system's push token and passes it to every push handler.
    public func set(pushInfo: WidgetPushInfo?) {
        guard pushInfo != self.pushInfo else { return }
        self.pushInfo = pushInfo
        tellPushHandlers()
    }

    /// Calls each type of handler once.
    func tellPushHandlers() {
        guard let pushInfo else { return }
        let pushed = declared.gallery.filter { $0.pushHandler != nil }
        let kinds = Set(pushed.map(\.kind))
        let placed = widgets.filter { kinds.contains($0.kind) }
        var told: Set<ObjectIdentifier> = []
        for type in pushed.compactMap(\.pushHandler)
        where told.insert(ObjectIdentifier(type)).inserted {
            type.init().pushTokenDidChange(pushInfo, widgets: placed)
        }
    }

    /// Passes the placed controls, with the system's push tokens, to every push handler of a
    /// control.
    public func set(controls: [ControlInfo]) {
        var told: Set<ObjectIdentifier> = []
        for type in declared.controls.compactMap(\.pushHandler)
        where told.insert(ObjectIdentifier(type)).inserted {
            type.init().pushTokensDidChange(controls: controls)
        }
    }
}
