import Foundation
import WidgetModel
import WidgetViews

/// The push token for all of an app's widgets on this device.
public struct WidgetPushInfo: Sendable, Hashable {
    /// The current push token, valid until the system issues another one.
    public let token: Data

    /// Creates push information from a token.
    public init(token: Data) { self.token = token }
}

/// Receives changes of the widgets' push token and of the set of placed widgets that accept pushes.
/// Register them with the gateway here: see ``ClientRegistrar``.
public protocol WidgetPushHandler: Sendable {
    /// Creates a handler; a new one is created for each call.
    init()

    /// Called when the token or the set of placed widgets has changed.
    ///
    /// - Parameter widgets: The placed widgets that accept pushes.
    func pushTokenDidChange(_ pushInfo: WidgetPushInfo, widgets: [WidgetInfo])
}

/// The push token of one placed control.
public struct ControlPushInfo: Sendable, Hashable {
    /// The push token.
    public let token: Data

    /// Creates push information from a token.
    public init(token: Data) { self.token = token }
}

/// A control that a person placed. Unlike widgets, controls have ids.
public struct ControlInfo: Sendable, Hashable {
    /// The id of the control.
    public let id: String
    /// The control's kind.
    public let kind: String
    /// The configuration that the person chose.
    public let configuration: [String: ParameterValue]
    /// The push token; `nil` while there is none.
    public let pushInfo: ControlPushInfo?

    /// Creates a control.
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

/// Receives changes of the push tokens of controls, always with all controls.
public protocol ControlPushHandler: Sendable {
    /// Creates a handler; a new one is created for each call.
    init()

    /// Called when at least one token has changed.
    func pushTokensDidChange(controls: [ControlInfo])
}

extension WidgetConfiguration {
    /// Sets the push handler, so that the widget accepts pushes. Several widgets may share a
    /// handler's type, which is then called once.
    public func pushHandler(_ type: any WidgetPushHandler.Type) -> some WidgetConfiguration {
        with { $0.pushHandler = type }
    }
}
