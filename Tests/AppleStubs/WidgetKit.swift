// swift-format-ignore-file
// A stub for Deploy/check-client: see AppleFoundation.swift. A type that is public here, and a member
// that is newer than its type, has a row in availability.txt.
import AppIntents
import Foundation

public final class WidgetCenter: Sendable {
    public static let shared = WidgetCenter()
    public func getCurrentConfigurations(
        _ completion: @escaping (Result<[WidgetInfo], any Error>) -> Void
    ) {}
    public func reloadTimelines(ofKind kind: String) {}
    public func reloadAllTimelines() {}
    public func invalidateConfigurationRecommendations() {}
    public func invalidateRelevance(ofKind kind: String) {}
    public var currentPushInfo: WidgetPushInfo? { get async { nil } }
}

public struct WidgetInfo: Hashable, Sendable {
    public let kind: String
    public let family: WidgetFamily
    public func widgetConfigurationIntent<Intent>(of intentType: Intent.Type = Intent.self) -> Intent?
    where Intent: WidgetConfigurationIntent { nil }
}

public enum WidgetFamily: Int, CaseIterable, CustomStringConvertible, Sendable {
    case systemSmall, systemMedium, systemLarge
    public var description: String { "" }
}

public struct WidgetPushInfo: Sendable { public let token: Data }

public protocol WidgetPushHandler {
    init()
    func pushTokenDidChange(_ pushInfo: WidgetPushInfo, widgets: [WidgetInfo])
}

public final class ControlCenter: Sendable {
    public static let shared = ControlCenter()
    public func currentControls() async throws -> [ControlInfo] { [] }
    public func reloadControls(ofKind kind: String) {}
    public func reloadAllControls() {}
}

public struct ControlInfo: Identifiable, Sendable {
    public var id: String { "" }
    public let kind: String
    public var pushInfo: ControlPushInfo?
    public func configurationIntent<Intent>(of intentType: Intent.Type = Intent.self) -> Intent?
    where Intent: ControlConfigurationIntent { nil }
}

public struct ControlPushInfo: Sendable { public let token: Data }

public protocol ControlPushHandler {
    init()
    func pushTokensDidChange(controls: [ControlInfo])
}

public protocol TimelineEntry { var date: Date { get } }

public struct TimelineReloadPolicy: Equatable, Sendable {
    public static let atEnd = TimelineReloadPolicy()
    public static let never = TimelineReloadPolicy()
    public static func after(_ date: Date) -> TimelineReloadPolicy { TimelineReloadPolicy() }
}

public struct Timeline<EntryType> where EntryType: TimelineEntry {
    public init(entries: [EntryType], policy: TimelineReloadPolicy) {}
}

public struct TimelineProviderContext: Sendable {
    public let family: WidgetFamily
    public let isPreview: Bool
}

public protocol AppIntentTimelineProvider {
    associatedtype Entry: TimelineEntry
    associatedtype Intent: WidgetConfigurationIntent
    typealias Context = TimelineProviderContext
    func placeholder(in context: Self.Context) -> Self.Entry
    func snapshot(for configuration: Self.Intent, in context: Self.Context) async -> Self.Entry
    func timeline(for configuration: Self.Intent, in context: Self.Context) async -> Timeline<Self.Entry>
}
