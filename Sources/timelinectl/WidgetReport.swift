import Foundation
import TimelineRuntime

/// The display of one placed widget.
struct WidgetReport {
    struct Context {
        let placed: PlacedSelection
        var location: WidgetLocation?
        let state: WidgetDeviceState
        let date: Date
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
    private let traits: WidgetTraits
    private(set) var environment: WidgetEnvironment?
    private(set) var state = State.hidden
    private(set) var node: WidgetNode?
    /// The time at which the shown entry began, or was to begin.
    private(set) var entry: Date?
    private(set) var nextEntry: Date?
    /// The time of the next request to the provider.
    private(set) var reload: Date?
    private(set) var faults: [String] = []
    private let date: Date

    /// Reads the archive's content for a widget in a context. Returns one report. For a widget that
    /// no person places, returns one for each time that a Smart Stack shows it, or one that says
    /// why it does not.
    static func all(
        of placed: ClientArchive.PlacedWidget, in context: Context
    ) -> [WidgetReport] {
        let date = context.date
        let traits = context.placed.traits(of: placed.widget)
        var context = context
        if traits.isRelevance, context.location == nil { context.location = .smartStack }
        var report = WidgetReport(of: placed, with: traits, in: context)
        guard traits.isRelevance, let environment = report.environment else { return [report] }
        let timeline = try? context.placed.timeline(of: placed.widget)
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

    private init(
        of placed: ClientArchive.PlacedWidget, with traits: WidgetTraits, in context: Context
    ) {
        let date = context.date
        (self.placed, self.traits, self.date) = (placed, traits, date)
        var timeline: TimelineArchive?
        do throws(TimelineArchive.Fault) {
            timeline = try context.placed.timeline(of: placed.widget)
        } catch {
            faults.append(Self.reason(error))
        }
        reload = timeline?.reloadDate
        let sequence = EntrySequence(dates: timeline?.entries.map(\.date) ?? [])
        nextEntry = sequence.nextChange(after: date)
        let environment: WidgetEnvironment
        do throws(UnsupportedContext) {
            environment = try Self.environment(of: placed.widget, with: traits, in: context)
        } catch {
            faults.append(error.description)
            return
        }
        self.environment = environment
        let isHidden = environment.redactionReasons.contains(.placeholder)
        if !isHidden, let timeline, let own = timeline.node(at: date, in: environment) {
            entry = sequence.index(at: date).map { timeline.entries[$0].date }
            (node, state) = (own, placed.isStale ? .stale : .fresh)
        } else {
            let placeholder = try? context.placed.archive.placeholder(of: placed.widget)
            node = placeholder?.node(at: date, in: environment)
            state = .placeholder
        }
        guard let node else {
            state = .hidden
            faults.append("nothing was drawn for this context")
            return
        }
        if let refusal = environment.interactionRefusal, !node.calls.isEmpty {
            faults.append(refusal.description)
        }
    }

    /// A placed control, which is drawn the same wherever it is shown.
    init(_ control: PlacedControl, _ node: WidgetNode, in context: Context) {
        let widget = WidgetInfo(
            kind: control.kind, family: WidgetFamily(rawValue: "control"),
            configuration: control.parameters)
        placed = ClientArchive.PlacedWidget(widget)
        (traits, date) = (WidgetTraits(), context.date)
        (self.node, state) = (node, .fresh)
        environment = try? PictureSizes.rules(on: context.placed.device).environment(
            of: widget, with: traits, at: WidgetLocation(rawValue: "controlCenter"),
            on: context.placed.device, state: context.state)
    }

    /// The widget's first context that matches the requested one.
    private static func environment(
        of widget: WidgetInfo, with traits: WidgetTraits, in context: Context
    ) throws(UnsupportedContext) -> WidgetEnvironment {
        let device = context.placed.device
        var rules = PictureSizes.rules(on: device)
        rules.admitsUnknownNames = false
        let first = rules.environments(
            of: widget, with: traits, on: device, state: context.state
        ).first { environment in
            environment.location == context.location ?? environment.location
                && [nil, environment.widgetRenderingMode].contains(context.state.renderingMode)
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

    /// The state of the shown entry, and when it changes.
    var condition: String {
        var said = [state.rawValue]
        if let environment {
            said.append("\(environment.location) \(environment.widgetRenderingMode.rawValue)")
        }
        if let entry { said.append("since \(entry.text)") }
        if let nextEntry { said.append("next \(nextEntry.text)") }
        if let reload { said.append("reload \(reload.text)") }
        return said.joined(separator: ", ")
    }

    /// For people.
    var text: String {
        var blocks = [
            TextBlock(TextBlock.line(placed.title)), TextBlock(TextBlock.line(condition)),
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
        func date(_ date: Date?) -> JSONValue { date.map { .string($0.text) } ?? .null }
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

    /// Draws the widget; `nil` if nothing is shown.
    func picture(_ settings: PictureSettings) -> Picture? {
        guard let node, let environment else { return nil }
        return Picture(placed.title, of: node, with: traits, in: environment, settings)
    }
}

extension Date {
    /// The date for people; in seconds if no calendar has it, because a provider may name any date.
    var text: String {
        let seconds = timeIntervalSince1970
        guard (-62_135_596_800..<253_402_300_800).contains(seconds) else { return "\(seconds) s" }
        return ISO8601Format()
    }
}

extension ClientArchive.PlacedWidget {
    /// The kind, the family and the configuration for people.
    var title: String {
        var words = [widget.kind, widget.family.rawValue]
        // That without a name is the id of a Live Activity.
        let values = widget.configuration.filter { !$0.key.isEmpty }
        words += values.sorted { $0.key < $1.key }.map { name, value in
            switch value {
            case .unset: "\(name)=(unset)"
            case .single(let text): "\(name)=\(text)"
            case .list(let texts): "\(name)=\(texts.joined(separator: ","))"
            }
        }
        if count > 1 { words.append("×\(count)") }
        return words.joined(separator: "  ")
    }
}
