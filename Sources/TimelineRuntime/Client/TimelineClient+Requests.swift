import Foundation
import WidgetModel
import WidgetViews

extension TimelineClient {
    /// Answers a request of another process; see ``ExtensionConnection``. A thrown error is sent to
    /// that process as the reason.
    func answer(_ request: JSONObject) async throws -> JSONValue {
        guard let name = request["do"]?.stringValue, let known = ExtensionRequest(rawValue: name)
        else { throw WidgetFailure(description: "the extension knows no such request") }
        return try await ask(known, request)
    }

    func ask(_ known: ExtensionRequest, _ request: JSONObject) async throws -> JSONValue {
        try await translating { try await answer(known, request) }
    }

    private func answer(
        _ known: ExtensionRequest, _ request: JSONObject
    ) async throws -> JSONValue {
        let kind = request["kind"]?.stringValue
        switch known {
        case .reload:
            handle(.reloadRequested(kind.map { ReloadRequest.kind($0) } ?? .all, .app))
        case .invalidateRecommendations: handle(.recommendationsInvalidated)
        case .invalidateRelevance:
            guard let kind else { throw WidgetFailure(description: "the request names no kind") }
            await invalidateRelevance(ofKind: kind)
        case .placedWidgets: return .array(placedWidgets.map { .object($0.archived) })
        case .device:
            if let bits = request["activity"]?.integerValue {
                set(activity: AppActivity(rawValue: UInt8(clamping: bits)))
            }
            if let name = request["changed"]?.stringValue {
                guard let change = ReloadReason.SystemChange(rawValue: name) else {
                    throw WidgetFailure(description: "the extension knows no such change")
                }
                systemChanged(change)
            }
        case .tap:
            let widget = try request.widget
            let environment = try environment(of: widget, request)
            try await interact(with: request.call, of: widget, in: environment)
            guard let shown = shown(widget, in: environment) else { break }
            return ["content": shown.node.json, "isUpdating": .bool(shown.isUpdating)]
        case .useControl: try await useControl(request["id"]?.stringValue ?? "")
        case .open:
            let widget = try request.widget
            try await open(
                widget, at: request["link"]?.stringValue.flatMap { URL(string: $0) },
                in: environment(of: widget, request))
        case .gallery: return .array(await gallery(at: request.location))
        case .smartStack:
            return .array(
                smartStack(state: WidgetDeviceState(lock: lock)).map { card in
                    [
                        "widget": .object(card.widget.archived), "content": card.node.json,
                        "isRelevant": .bool(card.isRelevant),
                    ]
                })
        case .controls: return .array(await controlDocuments())
        case .mirror: return .array(mirroredTimelines.map(\.document))
        case .mirroredTap:
            let result = try await perform(request.call, ofMirrored: request.widget)
            return [
                "timeline": result.timeline.document,
                "failure": result.failure.map { .string($0) } ?? .null,
            ]
        case .activity:
            let wanted = try KeptActivity(decoding: request["activity"] ?? .null)
            return .bool(try apply(wanted, starts: request["starts"]?.boolValue ?? false))
        }
        return .null
    }

    /// Returns the context in which another process shows a widget, with this device's lock.
    private func environment(
        of widget: WidgetInfo, _ request: JSONObject
    ) throws -> WidgetEnvironment {
        guard let device = configuration.device else { throw InteractionRefusal.notShown }
        var state = WidgetDeviceState(
            lock: lock, isAlwaysOn: request["alwaysOn"]?.boolValue ?? false,
            colorScheme: request["scheme"]?.stringValue
                .flatMap { ColorScheme(rawValue: $0) } ?? .light,
            renderingMode: request["mode"]?.stringValue
                .flatMap { WidgetRenderingMode(rawValue: $0) })
        if request["far"]?.boolValue == true { state.levelOfDetail = .simplified }
        if let presentation = widget.activityPresentation,
            let shown = declared.rules.environment(of: presentation, on: device, state: state)
        {
            return shown
        }
        guard let traits = declared.traits(ofKind: widget.kind) else {
            throw InteractionRefusal.notShown
        }
        return try declared.rules.environment(
            of: widget, with: traits, at: request.location, on: device, state: state)
    }

    /// Returns the widgets that people can add at a location, each with its families, the
    /// ready-made configurations or the parameters to choose, and a preview; without those whose
    /// provider fails. Empty before the app was launched once.
    private func gallery(at location: WidgetLocation) async -> [JSONValue] {
        guard archive?.isLaunched ?? true, let device = configuration.device else { return [] }
        let gallery = declared.rules.gallery(
            of: declared.gallery, at: location, on: device, traits: \.traits)
        var offers: [JSONValue] = []
        for (offer, isOther) in gallery.suggested.map({ ($0, false) })
            + gallery.other.map({ ($0, true) })
        {
            let widget = offer.widget
            var entry: JSONObject = [
                "kind": .string(widget.kind), "name": .string(widget.displayName.text),
                "families": .array(offer.families.map { .string($0.rawValue) }),
                "isOther": .bool(isOther),
                "asksForConfiguration": .bool(widget.asksForConfiguration),
            ]
            entry["description"] = widget.description.map { .string($0.text) }
            entry["mountingStyles"] = widget.traits.mountingStyles.map { styles in
                .array(styles.map(\.rawValue).sorted().map { .string($0) })
            }
            entry["texture"] = widget.traits.texture.map { .string($0.rawValue) }
            // A few that hang leave time for the rest of the answer.
            let choices = try? await Deadline.run(.seconds(5)) { [declared] in
                try await declared.offer(ofKind: widget.kind, on: device)
            }
            guard let choices else { continue }
            switch choices {
            case .none: continue
            case .configurable:
                entry["parameters"] = .array(widget.parameters.map(\.editorField))
                entry["summary"] = .string(widget.summary)
            case .preconfigured(let items):
                entry["choices"] = .array(items.map { .string($0.description) })
            }
            entry["preview"] = await preview(
                of: widget, in: offer.families[0], at: location, on: device)
            offers.append(.object(entry))
        }
        return offers
    }

    /// Returns the drawn snapshot of a widget with its default configuration, or its placeholder if
    /// the provider fails or takes too long.
    private func preview(
        of widget: AnyWidgetConfiguration, in family: WidgetFamily, at location: WidgetLocation,
        on device: WidgetDevice
    ) async -> JSONValue? {
        // A parameter without a value gets its default.
        let info = WidgetInfo(kind: widget.kind, family: family)
        let entry = try? await declared.snapshot(of: info, isPreview: true)
        let environment = try? declared.rules.environment(
            of: info, with: widget.traits, at: location, on: device, hasContent: entry != nil)
        guard let environment, let drawn = try? entry ?? declared.placeholder(of: info) else {
            return nil
        }
        return (try? declared.draw(drawn, of: info, in: environment))?.json
    }
}

extension IntentParameterDeclaration {
    /// All that an editor in another process makes its field from.
    var editorField: JSONValue {
        var field: JSONObject = [
            "name": .string(name), "title": .string(title.text), "type": .string(catalogType),
            "isOptional": .bool(isOptional),
        ]
        if case .choice(let texts) = type { field["choices"] = .array(texts.map { .string($0) }) }
        field["range"] = range.map { [.number($0.lowerBound), .number($0.upperBound)] }
        return .object(field)
    }
}

extension JSONObject {
    fileprivate var widget: WidgetInfo {
        get throws {
            guard let widget = self["widget"]?.objectValue.flatMap({ WidgetInfo(archived: $0) })
            else { throw WidgetFailure(description: "the request names no widget") }
            return widget
        }
    }

    fileprivate var call: IntentCall {
        get throws {
            guard let call = self["call"].flatMap({ IntentCall($0) }) else {
                throw WidgetFailure(description: "the request names no intent")
            }
            return call
        }
    }

    fileprivate var location: WidgetLocation {
        WidgetLocation(rawValue: self["location"]?.stringValue ?? "homeScreen")
    }
}
