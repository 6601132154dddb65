// swift-format-ignore-file
// A stub for Deploy/check-client: see AppleFoundation.swift.
public protocol AppIntent: Sendable { init() }
public protocol WidgetConfigurationIntent: AppIntent {}
public protocol ControlConfigurationIntent: AppIntent {}
