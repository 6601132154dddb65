import Foundation
import WidgetModel

/// A client for apps whose timelines the system stores, schedules and shows, as WidgetKit does:
/// registers the widgets that people have placed, reports which are stale, and builds only those.
///
/// The app and its widget extension use one each, with the same id and directory. Where no system
/// stores timelines, use `TimelineClient`.
public actor WidgetExtensionClient {
    /// The app's bundle id.
    public nonisolated let app: String
    /// The id that the app generated at its first launch; shared with the extension.
    public nonisolated let client: String

    /// The maximum number of times the registration in force is read until it lacks nothing.
    private static let readingsMax = 4

    private let service: GatewayService
    private let verifier: any NotificationVerifying
    private let shelf: TimelineCache
    private let registration: @Sendable () async -> ClientRegistration
    private let clock = ContinuousClock()
    private let origin = ContinuousClock.now
    private var serverTime = ServerTime()
    /// The members shared between the app's processes that this process registered last, when it
    /// reconciled with another process's registration.
    private var sharedRegistered: ClientRegistration?

    /// Creates a client.
    ///
    /// - Parameters:
    ///   - connection: The connection to the gateway.
    ///   - verifier: Checks that notifications are signed by the gateway.
    ///   - directory: The directory for timelines and cursors. The app and its extension share it,
    ///     for example in their app group; no other program may use it.
    ///   - registration: Returns the placed widgets and the addresses of this client. Called
    ///     whenever the gateway needs the registration.
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
        shelf = TimelineCache(directory: directory)
        self.registration = registration
    }

    // MARK: What is placed

    /// Registers the currently placed widgets. Call it when the system reports that widgets or the
    /// push token changed, and when the app launches.
    ///
    /// - Throws: ``GatewayFailure``; the previous registration then stays in force.
    public func register() async throws(GatewayFailure) { _ = try await register(with: nil) }

    /// - Parameter widget: A widget that is certainly placed, even if the app's list lacks it.
    /// - Returns: The cursor at which the registration came into force.
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

    /// Registers members of the last registration that the one in force lacks, until a reading
    /// shows that it lacks nothing; then adopts its digest.
    ///
    /// If every reading lacks something, the previous digest is kept: the next request is refused
    /// because of it, and the one after that reconciles again.
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
                // If the patch changed nothing, the gateway does not store the missing members.
                guard answer.value.digest == read.value.digest else { continue }
            }
            shelf.keep(
                registration: registration.json(maskingTokens: true), digest: read.value.digest,
                of: registration.widgets)
            return
        }
    }

    /// Sends a request, and repeats it once after reconciling if another registration was in force
    /// than its digest names.
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

    /// Returns the timeline of a widget: the last one built if the gateway confirms that nothing it
    /// depends on has changed, otherwise the result of `build`.
    ///
    /// A failure to ask the gateway, or to verify its notifications, never hides a change: the
    /// timeline is built, and the gateway asked again the next time.
    ///
    /// - Parameters:
    ///   - widget: The widget as it is registered.
    ///   - isUsable: Returns whether the last timeline is still usable at this time. It is not when
    ///     its entries have run out, although no data changed.
    ///   - build: Fetches the data and makes the timeline.
    /// - Throws: The error of `build`; the timeline then stays as stale as before.
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
        // If this throws, the stored timeline keeps its own cursor and stays as stale as before.
        let value = try await build()
        let encoder = JSONEncoder()
        // Equal values have equal texts then, in every process.
        encoder.outputFormatting = .sortedKeys
        let text = (try? encoder.encode(value)).map { String(decoding: $0, as: UTF8.self) }
        shelf.keep(.init(cursor: asked.cursor, timeline: text), of: widget)
        await acknowledge(
            widget, milliseconds: (clock.now - start).milliseconds,
            isUnchanged: text != nil && text == kept?.timeline)
        return value
    }

    /// Returns whether a timeline is stale, and the cursor for a timeline built from data that is
    /// fetched from now on.
    private func ask(
        about widget: ConfiguredWidget, since cursor: Cursor?
    ) async -> (isStale: Bool, cursor: Cursor?) {
        do throws(GatewayFailure) {
            guard isRegistered(widget) else {
                return (true, try await register(with: widget))
            }
            // An answer since the lowest cursor is about every stored timeline.
            let lowest = shelf.lowestCursor(of: shelf.registeredWidgets ?? [])
            var told = try await poll(
                since: lowest ?? cursor, kind: lowest == nil ? widget.kind : nil)
            if let cursor, cursor != told.since, !told.confirms(widget, at: cursor) {
                // This timeline is newer, and may include the change.
                told = try await poll(since: cursor, kind: widget.kind)
            }
            return (cursor.map { !told.confirms(widget, at: $0) } ?? true, told.cursor)
        } catch {
            guard case .refused(let problem) = error, problem.status == 404 else {
                return (true, cursor)
            }
            // The gateway has forgotten this client, so none of its cursors is valid any more.
            shelf.clear()
            return (true, try? await register(with: widget))
        }
    }

    private func isRegistered(_ widget: ConfiguredWidget) -> Bool {
        shelf.registeredWidgets?.contains { $0.isConfigured(like: widget) } ?? false
    }

    // MARK: In the app

    /// Returns the stale content of all placed widgets, for reloading them with the system.
    /// Acknowledges nothing: providers do that, timeline by timeline.
    ///
    /// - Throws: ``GatewayFailure``; `unreadable` for a notification that fails verification.
    public func stale() async throws(GatewayFailure) -> StaleContent {
        let widgets = (await registration()).widgets
        let told = try await poll(since: shelf.lowestCursor(of: widgets), kind: nil)
        return StaleContent(told.notifications)
    }

    /// Reports content as it becomes stale, until the stream ends or the calling task is cancelled.
    /// For an app in the foreground, whose reloads cost no budget. When it returns or throws, call
    /// it again after a pause.
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
            // An unverified notification ends the stream: the next one resumes before it.
            guard let claims = try? await self.verified(text) else { return false }
            await receive(StaleContent([claims]))
            return !Task.isCancelled
        }
    }

    // MARK: Requests

    /// The answer to a poll.
    private struct PollResult {
        let since: Cursor?
        let notifications: [ReloadNotification]
        /// The cursor of a client that has applied the notifications.
        let cursor: Cursor?

        /// Returns whether a timeline with every change up to `built` has those up to ``cursor``.
        func confirms(_ widget: ConfiguredWidget, at built: Cursor) -> Bool {
            // A later cursor of another epoch may be of a log that is lost.
            let isLater = built.epoch == cursor?.epoch && since.map { $0 <= built } ?? false
            return (built == since || isLater)
                && !notifications.contains {
                    $0.concernsTimeline(ofKind: widget.kind, widget.parameters)
                }
        }
    }

    /// Polls, and advances the stored timelines if the answer is not limited to a kind.
    private func poll(
        since cursor: Cursor?, kind: String?
    ) async throws(GatewayFailure) -> PollResult {
        let (poll, digest) = try await reconciling { digest throws(GatewayFailure) in
            let feed = NotificationFeed(
                service: service, client: client, kind: kind, registration: digest)
            return (try await feed.poll(since: cursor?.text), digest)
        }
        serverTime.note(poll.opening.date, now: now)
        var notifications: [ReloadNotification] = []
        for text in poll.notifications {
            do throws(VerificationFailure) {
                notifications.append(try await verified(text))
            } catch {
                throw .unreadable("a notification failed verification: \(error)")
            }
        }
        let told = PollResult(since: cursor, notifications: notifications, cursor: poll.cursor)
        if kind == nil { advance(by: told, registeredAs: digest) }
        return told
    }

    /// Advances the stored timelines that an answer confirms, so that an acknowledgement covers the
    /// changes of the others.
    ///
    /// - Parameter digest: The digest of the registration that the answer is about.
    private func advance(by told: PollResult, registeredAs digest: String?) {
        // Another process may have registered other widgets meanwhile.
        let widgets = shelf.registeredWidgets ?? []
        guard let cursor = told.cursor, digest != nil, digest == shelf.digest,
            // Nobody reports that a control was reloaded.
            !told.notifications.contains(where: { !$0.controls.isEmpty })
        else { return }
        for widget in widgets {
            guard var kept = shelf.kept(widget), let built = kept.cursor, built < cursor,
                told.confirms(widget, at: built)
            else { continue }
            kept.cursor = cursor
            shelf.keep(kept, of: widget)
        }
    }

    private func verified(
        _ notification: String
    ) async throws(VerificationFailure) -> ReloadNotification {
        let seconds = serverTime.seconds(
            now: now, fallback: Int64(Date().timeIntervalSince1970))
        return try await verifier.verify(notification, serverTime: seconds)
    }

    /// Acknowledges a build so that the gateway need not push. Best effort: the next poll conveys
    /// the same.
    private func acknowledge(
        _ widget: ConfiguredWidget, milliseconds: Int64, isUnchanged: Bool
    ) async {
        // The cursor covers only timelines. Recommendation sets are acknowledged by name, and this
        // client does not know when the system asked for one.
        guard let cursor = shelf.lowestCursor(of: await registration().widgets) else { return }
        let body = AcknowledgementBody(
            cursor: cursor,
            rebuilt: [
                AcknowledgementBody.timeline(
                    ofKind: widget.kind, widget.parameters, "ms", .integer(milliseconds),
                    isUnchanged: isUnchanged)
            ])
        _ = try? await reconciling { digest throws(GatewayFailure) in
            try await service.acknowledge(body.json, client: client, registration: digest)
        }
    }

    private var now: Duration { origin.duration(to: .now) }
}

extension ConfiguredWidget {
    /// Returns whether both have the same configuration, whatever their counts.
    fileprivate func isConfigured(like other: ConfiguredWidget) -> Bool {
        kind == other.kind && family == other.family && parameters == other.parameters
    }
}
