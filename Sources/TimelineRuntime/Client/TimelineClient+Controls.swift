import WidgetModel
import WidgetViews

extension TimelineClient {
    /// Draws the placed controls of a kind with their current values. A call during another call
    /// makes the first one draw once more. If a provider fails, its drawings stay, and it is asked
    /// again after a wait, which delays no other call.
    func rebuildControls(ofKind kind: String) async {
        guard drawingControls.updateValue(true, forKey: kind) == nil else { return }
        defer {
            drawingControls[kind] = nil
            restIfDone()
        }
        while drawingControls[kind] == true, !Task.isCancelled {
            drawingControls[kind] = false
            do {
                try await drawControls(ofKind: kind)
                controlBackoffs[kind] = nil
                tell(.controlRebuilt(kind: kind))
            } catch {
                guard !Task.isCancelled else { return }
                tell(.controlFailed(kind: kind, reason: Self.reason(of: error)))
                start { await self.retryControls(ofKind: kind) }
            }
        }
    }

    private func retryControls(ofKind kind: String) async {
        guard retriedControls.insert(kind).inserted else { return }
        var generator = SystemRandomNumberGenerator()
        let first = Backoff(base: settings.buildRetryBase, cap: settings.buildRetryCap)
        let wait = controlBackoffs[kind, default: first].next(using: &generator)
        try? await Task.sleep(for: wait)
        retriedControls.remove(kind)
        // Another call may have drawn them meanwhile.
        if controlBackoffs[kind] != nil { await rebuildControls(ofKind: kind) }
    }

    private func drawControls(ofKind kind: String) async throws {
        let placed = archive?.placedControls ?? []
        let (ids, before) = (Set(placed.map(\.id)), controls)
        controls = controls.filter { ids.contains($0.key) }
        var fault: (any Error)?
        for control in placed where control.kind == kind {
            do {
                controls[control.id] = try await drawn(kind, control.parameters)
                drawnFrom[control.id] = control.parameters
            } catch {
                fault = fault ?? error
            }
        }
        if controls != before {
            do throws(ClientArchive.Failure) {
                try archive?.save(drawings: controls)
            } catch {
                tell(.archiveFailed(error))
            }
        }
        if let fault { throw fault }
    }

    /// Performs the intent of a placed control, as a tap on it does, in the process that the intent
    /// chooses; then the control is drawn again. A locked device always refuses it: an intent
    /// cannot state here that it needs no authentication.
    ///
    /// - Throws: ``InteractionRefusal/locked``; ``WidgetFailure`` when no such control is drawn; or
    ///   the error of the intent.
    public func useControl(_ id: String) async throws {
        guard lock == .unlocked else { throw InteractionRefusal.locked }
        let placed = archive?.placedControls.first { $0.id == id }
        guard let placed, let call = controls[id]?.calls.first else {
            throw WidgetFailure(description: "no control with this id is drawn")
        }
        defer { start { await self.rebuildControls(ofKind: placed.kind) } }
        // An earlier run of this program may have drawn it.
        if (try? declared.intent(of: call)) == nil {
            _ = try await drawn(placed.kind, placed.parameters)
        }
        try await perform(call, as: declared.intent(of: call))
    }

    private func drawn(
        _ kind: String, _ values: [String: ParameterValue] = [:], isPreview: Bool = false
    ) async throws -> WidgetNode {
        // A few previews that hang leave time for the rest of the answer.
        let limit = configuration.buildDeadline
        return try await Deadline.run(isPreview ? min(.seconds(5), limit) : limit) {
            [declared, device = configuration.device] in
            try await declared.control(
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
        for control in declared.controls {
            let own = placed.filter { $0.kind == control.kind }
            if own.contains(where: { controls[$0.id] == nil || drawnFrom[$0.id] != $0.parameters })
            {
                // It may have been placed, or configured anew, since the last drawing.
                start { await self.rebuildControls(ofKind: control.kind) }
            }
            guard own.isEmpty else { continue }
            let preview = try? await drawn(control.kind, isPreview: true)
            documents.append([
                "kind": .string(control.kind), "name": .string(control.displayName.text),
                "parameters": .array(control.parameters.map(\.editorField)),
                "content": preview?.json ?? .null,
            ])
        }
        return documents
    }
}
