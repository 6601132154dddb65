import Foundation
import WidgetModel

/// What is shown of a widget at a moment.
public struct ShownWidget: Sendable, Equatable {
    /// Its content.
    public var node: WidgetNode
    /// It waits for its timeline after an interaction: parts that are marked as invalidatable look
    /// as if they wait.
    public var isUpdating: Bool
}

extension TimelineClient {
    /// What is shown of a widget at `date` in an environment: as it was drawn, with toggles at the
    /// state that people who used them expect. `nil` when nothing was drawn for this context.
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
        if !environment.redactionReasons.contains(.placeholder),
            let node = timelines[widget]?.node(at: date, in: environment)
        {
            return node
        }
        let placeholder =
            (try? archive?.placeholder(of: widget))
            ?? (try? runtime.archivedPlaceholder(of: widget, on: configuration.device))
        return placeholder?.node(at: date, in: environment)
    }

    /// A person uses a button or toggle of a placed widget: its intent is performed, and the timeline
    /// reloaded when it returns, whatever the budget. A toggle shows its new state meanwhile, and
    /// goes back with a reason when the intent fails or nothing is heard in time.
    ///
    /// Which process performs it is the intent's to say: see ``AppIntent/process``. One for the app's
    /// is handed to the client's ``AppProcess``, and fails when the client was given none; either way
    /// ``TimelineClientEvent/performed(_:intent:in:)`` or
    /// ``TimelineClientEvent/interactionFailed(_:reason:)`` tells of it.
    ///
    /// Returns when the intent has, and the reload is ordered. The client has to run.
    ///
    /// - Throws: Why nothing happens.
    public func interact(
        with call: IntentCall, of widget: WidgetInfo, in environment: WidgetEnvironment
    ) async throws(InteractionRefusal) {
        if let refusal = environment.interactionRefusal { throw refusal }
        // The environment may be from before the device was locked.
        guard lock == .unlocked else { throw .locked }
        guard let node = drawn(widget, at: .now, in: environment) else { throw .notShown }
        let steps = try interactions.tap(
            call, of: widget, showing: node, in: environment, now: now)
        watchInteractions()
        await take(steps, call, widget)
    }

    private func take(
        _ steps: [WidgetInteractions.Step], _ call: IntentCall, _ widget: WidgetInfo
    ) async {
        var queue = steps[...]
        while let step = queue.popFirst() {
            switch step {
            case .perform:
                handle(.interacting(widget))
                let failure = await run(call, of: widget)
                queue += interactions.performed(call, of: widget, failure: failure, now: now)
                watchInteractions()
            case .reload: await reload(afterUseOf: widget)
            }
        }
    }

    /// A person taps a placed widget, beside its buttons and toggles: the app is opened with where the
    /// tapped link leads, or else with what the widget says with `widgetURL`, and with what the person
    /// chose for the widget.
    ///
    /// A locked device is the host's: it asks its owner to unlock it first.
    ///
    /// - Parameter link: The destination of the link that was tapped; `nil` for anywhere else.
    /// - Throws: ``InteractionRefusal/notShown`` when the widget, or such a link, is not shown;
    ///   ``WidgetRuntime/Failure`` when the client was given no ``AppProcess``; or what that throws.
    public func open(
        _ widget: WidgetInfo, at link: URL? = nil, in environment: WidgetEnvironment
    ) async throws {
        guard widgets.contains(widget), let node = drawn(widget, at: .now, in: environment),
            link.map({ node.hasLink(to: $0) }) ?? true
        else { throw InteractionRefusal.notShown }
        let url = link ?? node.outermostWidgetURL.flatMap { URL(string: $0) }
        try await reachedApp("open it").open(WidgetActivity(widget: widget, url: url))
    }

    /// - Throws: ``WidgetRuntime/Failure`` when there is no app to do it.
    private func reachedApp(_ purpose: String) throws -> any AppProcess {
        guard let app else {
            throw WidgetRuntime.Failure(
                description: "only the app can \(purpose), and the client reaches none")
        }
        return app
    }

    /// - Returns: Why it had no success.
    func run(_ call: IntentCall, of widget: WidgetInfo) async -> String? {
        do {
            let intent = try runtime.intent(of: call)
            switch intent.process {
            case .widgetExtension: try await runtime.perform(call)
            case .app:
                try await reachedApp("perform \(call.intent)")
                    .perform(call, inForeground: intent.openAppWhenRun)
            }
            tell(.performed(widget, intent: call.intent, in: intent.process))
            return nil
        } catch {
            let reason =
                (error as? any LocalizedError)?.errorDescription ?? Self.reason(of: error)
            tell(.interactionFailed(widget, reason: reason))
            return reason
        }
    }

    private func reload(afterUseOf widget: WidgetInfo) async {
        handle(.interacted(widget, at: await position()))
    }

    /// What an intent did may come back as a change: a poll tells how far the log is, so that a
    /// timeline that is fetched from now on is known to hold it.
    func position() async -> Cursor? {
        guard isConnected, let cursor else { return nil }
        let feed = NotificationFeed(
            service: service, client: configuration.client, registration: engine?.digest)
        // Without an answer soon the reload costs one more when the change comes back.
        return try? await Deadline.run(.seconds(1)) {
            try await feed.poll(since: cursor.text).cursor
        }
    }

    /// Sets the timer of the toggles to what is due first.
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
