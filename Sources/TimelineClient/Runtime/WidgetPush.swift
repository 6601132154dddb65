import Foundation
import WidgetModel

/// How an app's widgets are pushed to on this device: one token for all of them.
public struct WidgetPushInfo: Sendable, Hashable {
    /// What a push goes to, until a later one takes its place.
    public let token: Data

    /// A token.
    public init(token: Data) { self.token = token }
}

/// Told when a widget's push token changes, or which widgets are placed that can be pushed to. The
/// place to tell the gateway: see ``ClientRegistrar``.
public protocol WidgetPushHandler: Sendable {
    /// A handler, made for one call.
    init()

    /// The token is new, or the set of placed widgets is.
    ///
    /// - Parameter widgets: The placed widgets that can be pushed to.
    func pushTokenDidChange(_ pushInfo: WidgetPushInfo, widgets: [WidgetInfo])
}

/// How one placed control is pushed to.
public struct ControlPushInfo: Sendable, Hashable {
    /// What a push goes to.
    public let token: Data

    /// A token.
    public init(token: Data) { self.token = token }
}

/// A control that a person placed. Unlike widgets, controls have ids.
public struct ControlInfo: Sendable, Hashable {
    /// Its id.
    public let id: String
    /// The control's kind.
    public let kind: String
    /// What the person chose.
    public let configuration: [String: ParameterValue]
    /// How it is pushed to; `nil` while it cannot be.
    public let pushInfo: ControlPushInfo?

    /// A control.
    public init(
        id: String, kind: String, configuration: [String: ParameterValue] = [:],
        pushInfo: ControlPushInfo? = nil
    ) {
        self.id = id
        self.kind = kind
        self.configuration = configuration
        self.pushInfo = pushInfo
    }
}

/// Told when the push tokens of controls change, always with all of them.
public protocol ControlPushHandler: Sendable {
    /// A handler, made for one call.
    init()

    /// Some of the tokens are new.
    func pushTokensDidChange(controls: [ControlInfo])
}

extension WidgetConfiguration {
    /// Lets the widget be pushed to. Several widgets may share a handler's type: it is called once.
    public func pushHandler(_ type: any WidgetPushHandler.Type) -> some WidgetConfiguration {
        with { $0.pushHandler = type }
    }
}

extension TimelineClient {
    /// How this client's widgets are pushed to; `nil` while there is no token, or no widget that can
    /// be pushed to.
    public var currentPushInfo: WidgetPushInfo? { pushInfo }

    /// The system has a token: tells every push handler.
    public func set(pushInfo: WidgetPushInfo?) {
        guard pushInfo != self.pushInfo else { return }
        self.pushInfo = pushInfo
        tellPushHandlers()
    }

    /// Calls each type of handler once.
    func tellPushHandlers() {
        guard let pushInfo else { return }
        let pushed = runtime.gallery.filter { $0.pushHandler != nil }
        let kinds = Set(pushed.map(\.kind))
        let placed = widgets.filter { kinds.contains($0.kind) }
        var told: Set<ObjectIdentifier> = []
        for type in pushed.compactMap(\.pushHandler)
        where told.insert(ObjectIdentifier(type)).inserted {
            type.init().pushTokenDidChange(pushInfo, widgets: placed)
        }
    }
}
