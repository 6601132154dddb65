import Foundation
import TimelineGatewayClient
import WidgetModel
import WidgetViews

extension TimelineClient {
    /// Returns the content of a widget at `date` in an environment: as it was drawn, with each used
    /// toggle in the state that its user expects. Returns `nil` when nothing was drawn for this
    /// context.
    public func shown(
        _ widget: WidgetInfo, at date: Date = .now, in environment: WidgetEnvironment
    ) -> ShownWidget? {
        drawn(widget, at: date, in: environment).map { node in
            ShownWidget(
                node: interactions.applied(to: node, of: widget),
                isUpdating: interactions.isUpdating(widget))
        }
    }

    private func drawn(
        _ widget: WidgetInfo, at date: Date, in environment: WidgetEnvironment
    ) -> WidgetNode? {
        if let id = widget.activityID, activities[id]?.phase(at: date) == .dismissed { return nil }
        if !environment.redactionReasons.contains(.placeholder),
            let node = timelines[widget]?.node(at: date, in: environment)
        {
            return node
        }
        let placeholder =
            (try? archive?.placeholder(of: widget))
            ?? (try? declared.archivedPlaceholder(of: widget, on: configuration.device))
        return placeholder?.node(at: date, in: environment)
    }

    /// Handles a tap on a button or toggle of a placed widget: performs its intent and, when the
    /// intent returns, reloads the timeline regardless of the budget. A toggle shows its new state
    /// meanwhile, and reverts when the intent fails or no new timeline arrives within the timeout.
    ///
    /// The intent chooses the process that performs it: see ``AppIntent/process``. An intent for
    /// the app's process is passed to the client's ``AppProcess``, and fails if the client has
    /// none. The outcome is reported as ``TimelineClientEvent/performed(_:intent:in:)`` or
    /// ``TimelineClientEvent/interactionFailed(_:reason:)``.
    ///
    /// Returns when the intent has returned and the reload is requested. The client must be
    /// running.
    ///
    /// - Throws: The reason why the tap is refused.
    public func interact(
        with call: IntentCall, of widget: WidgetInfo, in environment: WidgetEnvironment
    ) async throws(InteractionRefusal) {
        if let refusal = environment.interactionRefusal { throw refusal }
        // The environment may have been created before the device was locked.
        guard lock == .unlocked else { throw .locked }
        guard let node = drawn(widget, at: .now, in: environment) else { throw .notShown }
        let steps = try interactions.tap(
            call, of: widget, showing: node, in: environment, now: now)
        watchInteractions()
        await take(steps, call, widget)
    }

    private func take(
        _ steps: [PendingInteractions.Step], _ call: IntentCall, _ widget: WidgetInfo
    ) async {
        var queue = steps[...]
        while let step = queue.popFirst() {
            switch step {
            case .perform:
                if widget.activityID == nil { handle(.interacting(widget)) }
                let failure = await run(call, of: widget)
                queue += interactions.performed(call, of: widget, failure: failure, now: now)
                watchInteractions()
            case .reload: await reload(afterUseOf: widget)
            }
        }
    }

    /// Handles a tap on a placed widget outside its buttons and toggles: opens the app with the
    /// destination of the tapped link, or else with the widget's `widgetURL`, and with the
    /// configuration that the person chose for the widget.
    ///
    /// On a locked device, the host must ask its owner to unlock it first.
    /// - Parameter link: The destination of the tapped link; `nil` for any other place in the
    ///   widget. Where ``WidgetContextRules/linkFamilies`` does not name the widget's family, a
    ///   link is like any other place.
    /// - Throws: ``InteractionRefusal/notShown`` when the widget, or such a link, is not shown;
    ///   ``WidgetFailure`` when the client has no ``AppProcess``; or the error of the latter.
    public func open(
        _ widget: WidgetInfo, at link: URL? = nil, in environment: WidgetEnvironment
    ) async throws {
        guard archived.contains(widget), let node = drawn(widget, at: .now, in: environment),
            link.map({ node.hasLink(to: $0) }) ?? true
        else { throw InteractionRefusal.notShown }
        let hasLinks =
            widget.activityPresentation?.isInteractive
            ?? declared.rules.linkFamilies.contains(widget.family)
        let destination = hasLinks ? link : nil
        let url = destination ?? node.outermostWidgetURL.flatMap { URL(string: $0) }
        let app = try reachedApp("open it")
        let resolved = try? await Deadline.run(configuration.buildDeadline) { [declared] in
            await declared.resolved(widget)
        }
        try await app.open(WidgetActivity(widget: resolved ?? widget, url: url))
    }

    private func reachedApp(_ purpose: String) throws -> any AppProcess {
        guard let app else {
            throw WidgetFailure(
                description: "only the app can \(purpose), and no app is reachable")
        }
        return app
    }

    /// - Returns: The reason for the failure, for display; `nil` on success.
    func run(_ call: IntentCall, of widget: WidgetInfo) async -> String? {
        do {
            let intent = try await intent(of: call, in: widget)
            try await perform(call, as: intent)
            tell(.performed(widget, intent: call.intent, in: intent.process))
            return nil
        } catch {
            // The app's own text may contain what a person chose.
            let reason = Self.reason(of: error)
            tell(.interactionFailed(widget, reason: reason))
            return (error as? any LocalizedError)?.errorDescription ?? reason
        }
    }

    /// Performs an intent in the process that it chooses.
    func perform(_ call: IntentCall, as intent: any AppIntent.Type) async throws {
        switch intent.process {
        case .widgetExtension: try await declared.perform(call)
        case .app:
            try await reachedApp("perform \(call.intent)")
                .perform(call, inForeground: intent.openAppWhenRun)
        }
    }

    /// Returns the type of a control's intent. The control may have been drawn by an earlier run of
    /// this program; the widget is then drawn again.
    private func intent(
        of call: IntentCall, in widget: WidgetInfo
    ) async throws -> any AppIntent.Type {
        if let intent = try? declared.intent(of: call) { return intent }
        try await Deadline.run(configuration.buildDeadline) {
            [declared, device = configuration.device] in
            try await declared.findIntents(of: widget, on: device)
        }
        return try declared.intent(of: call)
    }

    private func reload(afterUseOf widget: WidgetInfo) async {
        if widget.activityID != nil {
            // Nothing is built: what the intent left is what is shown.
            let node = timelines[widget]?.anyNode(at: .now)
            return interactions.rebuilt(widget, begunAt: now, node: node)
        }
        handle(.interacted(widget, at: await position()))
    }

    /// Returns the end of the gateway's log, by a poll; `nil` without a connection or an answer
    /// within 1 s. A timeline fetched from now on includes every change up to this cursor, so the
    /// change that an intent caused need not reload it again.
    func position() async -> Cursor? {
        guard isConnected, let cursor else { return nil }
        let feed = NotificationFeed(
            service: service, client: configuration.client, registration: engine?.digest)
        // Without an answer in time, the returning change costs one more reload.
        return try? await Deadline.run(.seconds(1)) {
            try await feed.poll(since: cursor.text).cursor
        }
    }

    private func watchInteractions() {
        interactionTimer?.cancel()
        guard let deadline = interactions.deadline else { return }
        interactionTimer = Task {
            try? await Task.sleep(for: max(.zero, deadline - self.now))
            if !Task.isCancelled { await self.interactionsWoke() }
        }
    }

    private func interactionsWoke() async {
        let widgets = interactions.woke(now: now)
        watchInteractions()
        for widget in widgets { await reload(afterUseOf: widget) }
    }
}
