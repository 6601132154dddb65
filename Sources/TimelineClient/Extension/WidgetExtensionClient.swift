import Foundation
import WidgetModel

/// The client of an app whose timelines the system keeps, schedules and shows, as WidgetKit does:
/// registers the widgets that people have placed, says which are stale, and builds only those.
///
/// The app and its widget extension use one each, with the same id and directory. Where no system
/// keeps timelines, `TimelineClient` does.
public actor WidgetExtensionClient {
    /// The app's bundle id.
    public nonisolated let app: String
    /// The id the app drew at its first launch; the extension's is the same.
    public nonisolated let client: String

    /// Readings of the registration in force until it lacks nothing.
    private static let readingsMax = 4

    private let service: GatewayService
    private let verifier: any NotificationVerifying
    private let shelf: TimelineShelf
    private let registration: @Sendable () async -> ClientRegistration
    private let clock = ContinuousClock()
    private let origin = ContinuousClock.now
    private var serverTime = ServerTime()
    /// What was registered last of what the app's processes share, because another registration was
    /// in force.
    private var sharedRegistered: ClientRegistration?

    /// A client.
    ///
    /// - Parameters:
    ///   - connection: How it reaches the gateway.
    ///   - verifier: Tells whether notifications are the gateway's.
    ///   - directory: Where timelines are kept with their cursors: one that the app and its extension
    ///     share, such as one of their app group, and nobody else's.
    ///   - registration: What is placed now, and how this client can be told; asked whenever the
    ///     gateway has to know it.
    /// - Returns: `nil` unless `app` and `client` are 1 to 128 of `A-Za-z0-9._~-`.
    public init?(
        app: String, client: String, connection: any GatewayConnection,
        verifier: any NotificationVerifying, directory: URL,
        registration: @escaping @Sendable () async -> ClientRegistration
    ) {
        guard Identifier.isValid(app), Identifier.isValid(client) else { return nil }
        self.app = app
        self.client = client
        service = GatewayService(connection: connection, app: app)
        self.verifier = verifier
        shelf = TimelineShelf(directory: directory)
        self.registration = registration
    }

    // MARK: What is placed

    /// Tells the gateway what is placed now. To be called when the system says that widgets or the
    /// push token changed, and at the app's launch.
    ///
    /// - Throws: ``GatewayFailure``; what was registered before stays in force.
    public func register() async throws(GatewayFailure) { _ = try await register(with: nil) }

    /// - Parameter widget: One that is placed for certain, whatever the app's list says.
    /// - Returns: Where the registration came into force.
    private func register(with widget: ConfiguredWidget?) async throws(GatewayFailure) -> Cursor {
        var registration = await registration()
        if let widget, !registration.widgets.contains(where: { $0.isConfigured(like: widget) }) {
            registration.widgets.append(widget)
        }
        let answer = try await service.register(registration, client: client)
        serverTime.note(answer.head["date"], now: now)
        shelf.keep(
            registration: registration.json(maskingTokens: true), digest: answer.value.digest,
            of: registration.widgets)
        return answer.value.cursor
    }

    /// Registers what the registration in force lacks of what was registered last, until a reading
    /// shows that it lacks nothing; then that one's digest is adopted.
    ///
    /// Where something is lacking each time, the digest of before is kept: the next request is
    /// refused for it, and the one after that reconciles again.
    private func reconcile() async throws(GatewayFailure) {
        var registration = await registration()
        if let widgets = shelf.registeredWidgets { registration.widgets = widgets }
        var shared = registration
        (shared.widgets, shared.recommendations) = ([], [])
        for _ in 0..<Self.readingsMax {
            let read = try await service.registration(ofClient: client)
            serverTime.note(read.head["date"], now: now)
            let patch = read.value.patch(
                to: registration, kinds: [], includesShared: shared != sharedRegistered)
            if let patch {
                let answer = try await service.patch(patch, client: client)
                sharedRegistered = shared
                // Where the patch changed nothing, the gateway does not keep what is lacking.
                guard answer.value.digest == read.value.digest else { continue }
            }
            shelf.keep(
                registration: registration.json(maskingTokens: true), digest: read.value.digest,
                of: registration.widgets)
            return
        }
    }

    /// Asks once more where another registration was in force than this client believed.
    private func reconciling<Answer: Sendable>(
        _ ask: (_ digest: String?) async throws(GatewayFailure) -> Answer
    ) async throws(GatewayFailure) -> Answer {
        do throws(GatewayFailure) {
            return try await ask(shelf.digest)
        } catch {
            guard error.isRegistrationMismatch else { throw error }
            try await reconcile()
            return try await ask(shelf.digest)
        }
    }

    // MARK: In a timeline provider

    /// The timeline of a widget: what was built last while the gateway says that nothing it depends
    /// on has changed, otherwise what `build` makes of data that it fetches now.
    ///
    /// A gateway that cannot be asked, or is not believed, never hides a change: the timeline is
    /// built, and the gateway asked again the next time.
    ///
    /// - Parameters:
    ///   - widget: As it is registered.
    ///   - isUsable: Whether what was built last will still do at this time; where entries have run
    ///     out it does not, though no data changed.
    ///   - build: Fetches the data and makes the timeline.
    /// - Throws: What `build` throws; the timeline is as stale then as it was before.
    public func timeline<Value: Codable & Sendable>(
        of widget: ConfiguredWidget, isUsable: @Sendable (Value) -> Bool = { _ in true },
        build: @Sendable () async throws -> Value
    ) async throws -> Value {
        let kept = shelf.kept(widget)
        let asked = await ask(about: widget, since: kept?.cursor)
        if !asked.isStale, let text = kept?.timeline,
            let value = try? JSONDecoder().decode(Value.self, from: Data(text.utf8)),
            isUsable(value)
        {
            shelf.keep(.init(cursor: asked.cursor, timeline: text), of: widget)
            return value
        }
        let start = clock.now
        // When it throws, what is kept stays with its own cursor, and is as stale as before.
        let value = try await build()
        let text = (try? JSONEncoder().encode(value)).map { String(decoding: $0, as: UTF8.self) }
        shelf.keep(.init(cursor: asked.cursor, timeline: text), of: widget)
        await acknowledge(widget, milliseconds: (clock.now - start).milliseconds)
        return value
    }

    /// Whether a timeline is stale, and the cursor that goes with what is built from data fetched
    /// from now on.
    private func ask(
        about widget: ConfiguredWidget, since cursor: Cursor?
    ) async -> (isStale: Bool, cursor: Cursor?) {
        do throws(GatewayFailure) {
            guard isRegistered(widget) else {
                return (true, try await register(with: widget))
            }
            let told = try await poll(since: cursor, kind: widget.kind)
            let isStale = told.notifications.contains { notification in
                notification.all
                    || notification.reload.contains {
                        $0.concerns(kind: widget.kind, values: widget.parameters)
                    }
            }
            return (isStale || cursor == nil, told.cursor)
        } catch {
            guard case .refused(let problem) = error, problem.status == 404 else {
                return (true, cursor)
            }
            // The gateway has forgotten this client: no cursor of its own holds any more.
            shelf.clear()
            return (true, try? await register(with: widget))
        }
    }

    private func isRegistered(_ widget: ConfiguredWidget) -> Bool {
        let widgets = shelf.registration?.objectValue?["widgets"]?.arrayValue ?? []
        return widgets.contains { document in
            document.objectValue?["kind"]?.stringValue == widget.kind
                && document.objectValue?["family"]?.stringValue == widget.family
                && document.objectValue?["parameters"]
                    == widget.json.objectValue?["parameters"]
        }
    }

    // MARK: In the app

    /// What is stale of all that is placed, for a system to be told. Nothing is marked as done by it:
    /// providers do that, timeline by timeline.
    ///
    /// - Throws: ``GatewayFailure``; for a notification that is not believed, `unreadable`.
    public func stale() async throws(GatewayFailure) -> StaleContent {
        let widgets = (await registration()).widgets
        let told = try await poll(since: shelf.lowestCursor(of: widgets), kind: nil)
        return StaleContent(told.notifications)
    }

    /// Listens, and hands on what becomes stale, until the stream ends or the calling task is
    /// cancelled: for an app in the foreground, whose reloads cost no budget. To be called again
    /// after a while when it returns or throws.
    ///
    /// - Throws: ``GatewayFailure``.
    public func follow(
        _ receive: @Sendable (StaleContent) async -> Void
    ) async throws(GatewayFailure) {
        let widgets = (await registration()).widgets
        let since = shelf.lowestCursor(of: widgets)?.text
        let stream = try await reconciling { digest throws(GatewayFailure) in
            try await NotificationFeed(service: service, client: client, registration: digest)
                .open(since: since)
        }
        serverTime.note(stream.opening.date, now: now)
        try await stream.read { element in
            guard case .notification(let text) = element else { return !Task.isCancelled }
            // One that is not believed ends the stream: the next one resumes before it.
            guard let claims = try? await self.verified(text) else { return false }
            await receive(StaleContent([claims]))
            return !Task.isCancelled
        }
    }

    // MARK: Requests

    private func poll(
        since cursor: Cursor?, kind: String?
    ) async throws(GatewayFailure) -> (notifications: [ReloadNotification], cursor: Cursor?) {
        let poll = try await reconciling { digest throws(GatewayFailure) in
            try await NotificationFeed(
                service: service, client: client, kind: kind, registration: digest
            ).poll(since: cursor?.text)
        }
        serverTime.note(poll.opening.date, now: now)
        var notifications: [ReloadNotification] = []
        for text in poll.notifications {
            do throws(VerificationFailure) {
                notifications.append(try await verified(text))
            } catch {
                throw .unreadable("a notification is not to be believed: \(error)")
            }
        }
        return (notifications, poll.cursor)
    }

    private func verified(
        _ notification: String
    ) async throws(VerificationFailure) -> ReloadNotification {
        let seconds = serverTime.seconds(
            now: now, fallback: Int64(Date().timeIntervalSince1970))
        return try await verifier.verify(notification, serverTime: seconds)
    }

    /// Tells the gateway, so that it need not push: best effort, for the next poll tells it too.
    private func acknowledge(_ widget: ConfiguredWidget, milliseconds: Int64) async {
        // The cursor speaks of timelines alone: a set is owed until it is named, and nobody here
        // knows when the system asked for it.
        guard let cursor = shelf.lowestCursor(of: await registration().widgets) else { return }
        let body = AcknowledgementBody(
            cursor: cursor,
            rebuilt: [
                AcknowledgementBody.timeline(
                    widget.kind, widget.parameters, "ms", .integer(milliseconds))
            ])
        _ = try? await reconciling { digest throws(GatewayFailure) in
            try await service.acknowledge(body.json, client: client, registration: digest)
        }
    }

    private var now: Duration { origin.duration(to: .now) }
}

extension ConfiguredWidget {
    /// Whether both show the same, however many there are.
    fileprivate func isConfigured(like other: ConfiguredWidget) -> Bool {
        kind == other.kind && family == other.family && parameters == other.parameters
    }
}
