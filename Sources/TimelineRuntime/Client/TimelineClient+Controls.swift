import WidgetModel
import WidgetViews

extension TimelineClient {
    /// Draws the placed controls of a kind with their current values. A call during another one
    /// makes that one draw once more. If a provider fails, the drawings stay, and it is asked again
    /// later.
    func rebuildControls(ofKind kind: String) async {
        guard drawingControls.updateValue(true, forKey: kind) == nil else { return }
        defer { drawingControls[kind] = nil }
        var backoff = Backoff(base: settings.buildRetryBase, cap: settings.buildRetryCap)
        var generator = SystemRandomNumberGenerator()
        while drawingControls[kind] == true, !Task.isCancelled {
            drawingControls[kind] = false
            do {
                try await drawControls(ofKind: kind)
                backoff.succeeded()
                tell(.controlRebuilt(kind: kind))
            } catch {
                guard !Task.isCancelled else { return }
                tell(.controlFailed(kind: kind, reason: Self.reason(of: error)))
                drawingControls[kind] = true
                try? await Task.sleep(for: backoff.next(using: &generator))
            }
        }
    }

    private func drawControls(ofKind kind: String) async throws {
        let placed = archive?.placedControls ?? []
        let ids = Set(placed.map(\.id))
        controls = controls.filter { ids.contains($0.key) }
        var fault: (any Error)?
        for control in placed where control.kind == kind {
            do {
                controls[control.id] = try await drawn(kind, control.parameters)
            } catch {
                fault = fault ?? error
            }
        }
        if let fault { throw fault }
    }

    private func drawn(
        _ kind: String, _ values: [String: ParameterValue] = [:], isPreview: Bool = false
    ) async throws -> WidgetNode {
        try await Deadline.run(configuration.buildDeadline) {
            [runtime, device = configuration.device] in
            try await runtime.control(
                ofKind: kind, with: values, isPreview: isPreview, on: device)
        }
    }

    /// Returns the placed controls as they are drawn, then a preview of each other kind.
    func controlDocuments() async -> [JSONValue] {
        let placed = archive?.placedControls ?? []
        var documents = placed.map { control -> JSONValue in
            [
                "id": .string(control.id), "kind": .string(control.kind),
                "content": controls[control.id]?.json ?? .null,
            ]
        }
        for control in runtime.controls {
            let own = placed.filter { $0.kind == control.kind }
            if own.contains(where: { controls[$0.id] == nil }) {
                // It may have been placed since the last drawing.
                start { await self.rebuildControls(ofKind: control.kind) }
            }
            guard own.isEmpty else { continue }
            let preview = try? await drawn(control.kind, isPreview: true)
            documents.append([
                "kind": .string(control.kind), "name": .string(control.displayName.text),
                "content": preview?.json ?? .null,
            ])
        }
        return documents
    }
}
