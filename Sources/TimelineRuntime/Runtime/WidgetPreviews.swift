import Foundation
import Synchronization
import WidgetViews

/// Declares a preview of a widget with entries of the developer's own (article "Creating a widget
/// extension", "Preview widgets in Xcode"). ``WidgetPreviews/render(to:)`` draws it.
@freestanding(declaration)
public macro Preview(
    _ name: String? = nil, as family: WidgetFamily, widget: @escaping @Sendable () -> any Widget,
    @PreviewTimelineBuilder timeline: @escaping @Sendable () -> [any TimelineEntry]
) = #externalMacro(module: "PreviewMacro", type: "Preview")

/// Declares a preview of a widget with the timeline of a provider.
@freestanding(declaration)
public macro Preview<Provider: TimelineProvider>(
    _ name: String? = nil, as family: WidgetFamily, widget: @escaping @Sendable () -> any Widget,
    timelineProvider: @escaping @Sendable () -> Provider
) = #externalMacro(module: "PreviewMacro", type: "Preview")

/// Declares a preview of a configured widget with the timeline of a provider.
@freestanding(declaration)
public macro Preview<Provider: AppIntentTimelineProvider>(
    _ name: String? = nil, as family: WidgetFamily, using intent: Provider.Intent,
    widget: @escaping @Sendable () -> any Widget,
    timelineProvider: @escaping @Sendable () -> Provider
) = #externalMacro(module: "PreviewMacro", type: "Preview")

/// Collects the entries of a preview.
@resultBuilder
public enum PreviewTimelineBuilder {
    /// Returns the entries in their order.
    public static func buildBlock(_ entries: any TimelineEntry...) -> [any TimelineEntry] {
        entries
    }
}

/// The previews that a program declares.
public enum WidgetPreviews {
    private struct Preview: Sendable {
        let name: String?
        let family: WidgetFamily
        let widget: @Sendable () -> any Widget
        let timeline: @Sendable (TimelineProviderContext) async throws -> AnyTimeline
    }

    private static let declared = Mutex<[Preview]>([])

    /// Adds a preview with entries. `#Preview` calls it before the program begins.
    public static func register(
        _ name: String? = nil, as family: WidgetFamily,
        widget: @escaping @Sendable () -> any Widget,
        @PreviewTimelineBuilder timeline: @escaping @Sendable () -> [any TimelineEntry]
    ) {
        add(name, as: family, widget: widget) { _ in
            AnyTimeline(entries: timeline(), reloadDate: nil)
        }
    }

    /// Adds a preview with the timeline of a provider.
    public static func register(
        _ name: String? = nil, as family: WidgetFamily,
        widget: @escaping @Sendable () -> any Widget,
        timelineProvider: @escaping @Sendable () -> some TimelineProvider
    ) {
        add(name, as: family, widget: widget) {
            AnyTimeline(try await timelineProvider().awaitedTimeline(in: $0))
        }
    }

    /// Adds a preview with the timeline that a provider builds for a configuration.
    public static func register<Provider: AppIntentTimelineProvider>(
        _ name: String? = nil, as family: WidgetFamily, using intent: Provider.Intent,
        widget: @escaping @Sendable () -> any Widget,
        timelineProvider: @escaping @Sendable () -> Provider
    ) {
        add(name, as: family, widget: widget) {
            let intent = try await Provider.Intent.resolved(from: intent.parameters)
            return AnyTimeline(try await timelineProvider().timeline(for: intent, in: $0))
        }
    }

    private static func add(
        _ name: String?, as family: WidgetFamily,
        widget: @escaping @Sendable () -> any Widget,
        timeline: @escaping @Sendable (TimelineProviderContext) async throws -> AnyTimeline
    ) {
        let preview = Preview(name: name, family: family, widget: widget, timeline: timeline)
        declared.withLock { $0.append(preview) }
    }

    /// Draws every preview for the first device that has its family, and writes each archive to a
    /// file of its own, which `timelinectl show` reads.
    ///
    /// - Returns: The files: the previews' numbers, names or kinds, and families.
    /// - Throws: ``WidgetFailure`` with the reasons of those that cannot be drawn or written, when
    ///   the others are; or an error of the file system if the directory cannot be created.
    @discardableResult
    public static func render(to directory: URL) async throws -> [URL] {
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        var (files, faults): ([URL], [String]) = ([], [])
        for (index, preview) in declared.withLock({ $0 }).enumerated() {
            do {
                let widgets = try WidgetDeclarations([preview.widget().body])
                guard let kind = widgets.gallery.first?.kind else { continue }
                let info = WidgetInfo(kind: kind, family: preview.family)
                let timeline = try await preview.timeline(
                    TimelineProviderContext(family: info.family, isPreview: true))
                let platform = WidgetContextTable.places[info.family]?.first?.platform ?? .iOS
                let archive = try widgets.archive(timeline, of: info, on: WidgetDevice(platform))
                let title = (preview.name ?? kind).map { $0.isLetter || $0.isNumber ? $0 : "-" }
                let file = directory.appending(
                    path: "\(index + 1)-\(String(title))-\(info.family).timeline")
                try Data(archive.serialized).write(to: file)
                files.append(file)
            } catch {
                faults.append("preview \(index + 1) cannot be drawn: \(error)")
            }
        }
        guard faults.isEmpty else {
            throw WidgetFailure(description: faults.joined(separator: "\n"))
        }
        return files
    }
}
