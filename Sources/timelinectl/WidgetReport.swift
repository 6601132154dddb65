import Foundation
import TimelineClient
import WidgetModel

/// The display of one placed widget.
struct WidgetReport {
    struct Context {
        var location: WidgetLocation?
        var mode: WidgetRenderingMode?
        var isLocked = false
        var isDark = false
        var isAlwaysOn = false

        fileprivate var state: WidgetDeviceState {
            WidgetDeviceState(
                lock: isLocked ? .lockedWithPasscode : .unlocked, isAlwaysOn: isAlwaysOn,
                colorScheme: isDark ? .dark : .light, renderingMode: mode,
                sensitiveContent: isLocked
                    ? SensitiveContentSettings(
                        showsOnLockScreen: false, showsInAlwaysOn: false, hiddenComplications: .all)
                    : SensitiveContentSettings())
        }
    }

    /// The freshness of the shown entry.
    enum State: String {
        case fresh
        case stale
        case placeholder
        /// Nothing is shown; a fault states the reason.
        case hidden
    }

    let placed: ClientArchive.PlacedWidget
    private(set) var environment: WidgetEnvironment?
    private(set) var state = State.hidden
    private(set) var node: WidgetNode?
    /// The time at which the shown entry began, or was to begin.
    private(set) var entry: Date?
    private(set) var nextEntry: Date?
    /// The time of the next request to the provider.
    private(set) var reload: Date?
    /// Problems with the widget.
    private(set) var faults: [String] = []
    private let date: Date

    /// Reads the archive's content for a widget in a context at `date`. Returns one report; for a
    /// widget that is not placed by a person, one for each time that a Smart Stack shows it, or one
    /// with the reason why it is not shown.
    static func all(
        of placed: ClientArchive.PlacedWidget, in archive: ClientArchive, on device: WidgetDevice,
        in context: Context, at date: Date
    ) -> [WidgetReport] {
        let isRelevance = archive.traits(of: placed.widget).isRelevance
        var context = context
        if isRelevance, context.location == nil { context.location = .smartStack }
        var report = WidgetReport(of: placed, in: archive, on: device, in: context, at: date)
        guard isRelevance, let environment = report.environment else { return [report] }
        let timeline = (try? archive.timeline(of: placed.widget)) ?? nil
        report.node = nil
        report.entry = nil
        report.nextEntry = timeline?.entries.map(\.date).first { $0 > date }
        report.state = .hidden
        let relevant = timeline?.relevant(at: date, in: environment) ?? []
        var reason: String?
        if environment.location != .smartStack {
            reason = "only the Smart Stack shows it"
        } else if environment.redactionReasons.contains(.placeholder) {
            reason = "the lock hides it"
        } else if relevant.isEmpty {
            reason = "no entry of it is relevant now"
        }
        if let reason {
            report.faults.append(reason)
            return [report]
        }
        return relevant.map { since, node in
            var card = report
            (card.entry, card.node, card.state) = (since, node, placed.isStale ? .stale : .fresh)
            return card
        }
    }

    /// Reads the archive's content for a placed widget in a context at `date`.
    private init(
        of placed: ClientArchive.PlacedWidget, in archive: ClientArchive, on device: WidgetDevice,
        in context: Context, at date: Date
    ) {
        self.placed = placed
        self.date = date
        var timeline: TimelineArchive?
        do throws(TimelineArchive.Fault) {
            timeline = try archive.timeline(of: placed.widget)
        } catch {
            faults.append(Self.reason(error))
        }
        reload = timeline?.reloadDate
        let sequence = EntrySequence(dates: timeline?.entries.map(\.date) ?? [])
        nextEntry = sequence.nextChange(after: date)
        let environment: WidgetEnvironment
        do throws(UnsupportedContext) {
            environment = try Self.environment(
                of: placed.widget, with: archive.traits(of: placed.widget), on: device, in: context)
        } catch {
            faults.append(error.description)
            return
        }
        self.environment = environment
        node = archive.node(of: placed.widget, at: date, in: environment)
        guard let node else {
            faults.append("nothing was drawn for this context")
            return
        }
        if !environment.redactionReasons.contains(.placeholder), let timeline,
            timeline.node(at: date, in: environment) != nil
        {
            entry = sequence.index(at: date).map { timeline.entries[$0].date }
            state = placed.isStale ? .stale : .fresh
        } else {
            state = .placeholder
        }
        if let refusal = environment.interactionRefusal, node.hasControls {
            faults.append(refusal.description)
        }
    }

    /// The widget's first context that matches the requested one.
    private static func environment(
        of widget: WidgetInfo, with traits: WidgetTraits, on device: WidgetDevice,
        in context: Context
    ) throws(UnsupportedContext) -> WidgetEnvironment {
        var rules = WidgetContextRules()
        rules.admitsUnknownNames = false
        let first = rules.environments(
            of: widget, with: traits, on: device, state: context.state
        ).first { environment in
            (context.location == nil || environment.location == context.location)
                && (context.mode == nil || environment.widgetRenderingMode == context.mode)
        }
        if let first { return first }
        // The rules state the reason.
        let places = WidgetContextTable.places[widget.family] ?? []
        let location =
            context.location ?? places.first { $0.platform == device.platform }?.location
            ?? .homeScreen
        return try rules.environment(
            of: widget, with: traits, at: location, on: device, state: context.state)
    }

    private static func reason(_ fault: TimelineArchive.Fault) -> String {
        switch fault {
        case .corrupt: "its timeline is damaged"
        case .newer(let version): "its timeline was written by a newer client, in format \(version)"
        }
    }

    /// For people.
    var text: String {
        let widget = placed.widget
        var name = [widget.kind, widget.family.rawValue]
        name += widget.configuration.sorted { $0.key < $1.key }.map {
            "\($0.key)=\(Self.text($0.value))"
        }
        if placed.count > 1 { name.append("×\(placed.count)") }
        var said = [state.rawValue]
        if let environment {
            said.append("\(environment.location) \(environment.widgetRenderingMode.rawValue)")
        }
        if let entry { said.append("since \(Self.text(entry))") }
        if let nextEntry { said.append("next \(Self.text(nextEntry))") }
        if let reload { said.append("reload \(Self.text(reload))") }
        var blocks = [
            TextBlock(TextBlock.line(name.joined(separator: "  "))),
            TextBlock(TextBlock.line(said.joined(separator: ", "))),
        ]
        if let node { blocks.append(node.drawing(at: date).framed) }
        if let url = node?.outermostWidgetURL {
            blocks.append(TextBlock(TextBlock.line("opens \(url)")))
        }
        blocks += faults.map { TextBlock(TextBlock.line("  \($0)")) }
        return TextBlock.above(blocks).lines.joined(separator: "\n")
    }

    /// For programs.
    var json: JSONValue {
        func date(_ date: Date?) -> JSONValue { date.map { .string(Self.text($0)) } ?? .null }
        return [
            "kind": .string(placed.widget.kind), "family": .string(placed.widget.family.rawValue),
            "parameters": parametersObject(placed.widget.configuration),
            "count": .integer(Int64(placed.count)), "state": .string(state.rawValue),
            "location": environment.map { .string($0.location.rawValue) } ?? .null,
            "mode": environment.map { .string($0.widgetRenderingMode.rawValue) } ?? .null,
            "entry": date(entry), "nextEntry": date(nextEntry), "reload": date(reload),
            "content": node?.json ?? .null, "faults": .array(faults.map { .string($0) }),
        ]
    }

    private static func text(_ value: ParameterValue) -> String {
        switch value {
        case .unset: "(unset)"
        case .single(let text): text
        case .list(let texts): texts.joined(separator: ",")
        }
    }

    private static func text(_ date: Date) -> String {
        // A provider may name any date; outside the range of a calendar, print the seconds.
        let seconds = date.timeIntervalSince1970
        guard (-62_135_596_800..<253_402_300_800).contains(seconds) else { return "\(seconds) s" }
        return date.ISO8601Format()
    }
}
