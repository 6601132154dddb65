// swift-format-ignore-file
// A stub for Deploy/check-client: see AppleFoundation.swift. A type that is public here, and a member
// that is newer than its type, has a row in availability.txt.
import AppIntents
import Foundation

nonisolated(unsafe) var asked: [String] = []
nonisolated(unsafe) var placedWidgets: [WidgetInfo] = []
nonisolated(unsafe) var placedControls: [ControlInfo] = []
nonisolated(unsafe) var chosen: (any AppIntent)?

public final class WidgetCenter: Sendable {
    public static let shared = WidgetCenter()
    public func getCurrentConfigurations(
        _ completion: @escaping (Result<[WidgetInfo], any Error>) -> Void
    ) { completion(.success(placedWidgets)) }
    public func reloadTimelines(ofKind kind: String) { asked.append("reloadTimelines \(kind)") }
    public func reloadAllTimelines() { asked.append(#function) }
    public func invalidateConfigurationRecommendations() { asked.append(#function) }
    public func invalidateRelevance(ofKind kind: String) { asked.append("invalidateRelevance \(kind)") }
    public var currentPushInfo: WidgetPushInfo? { get async { nil } }
}

public struct WidgetInfo: Hashable, Sendable {
    public let kind: String
    public let family: WidgetFamily
    public func widgetConfigurationIntent<Intent>(of intentType: Intent.Type = Intent.self) -> Intent?
    where Intent: WidgetConfigurationIntent { chosen as? Intent }
}

public enum WidgetFamily: Int, CaseIterable, CustomStringConvertible, Sendable {
    case systemSmall, systemMedium, systemLarge
    public var description: String { ["systemSmall", "systemMedium", "systemLarge"][rawValue] }
}

public struct WidgetPushInfo: Sendable { public let token: Data }

public protocol WidgetPushHandler {
    init()
    func pushTokenDidChange(_ pushInfo: WidgetPushInfo, widgets: [WidgetInfo])
}

public final class ControlCenter: Sendable {
    public static let shared = ControlCenter()
    public func currentControls() async throws -> [ControlInfo] { placedControls }
    public func reloadControls(ofKind kind: String) { asked.append("reloadControls \(kind)") }
    public func reloadAllControls() { asked.append(#function) }
}

public struct ControlInfo: Identifiable, Sendable {
    public let id: String
    public let kind: String
    public var pushInfo: ControlPushInfo?
    public func configurationIntent<Intent>(of intentType: Intent.Type = Intent.self) -> Intent?
    where Intent: ControlConfigurationIntent { chosen as? Intent }
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
