import Foundation
// An app writes one import: registrations, widgets and addresses are of the model.
@_exported import WidgetModel

/// A gateway's client for apps whose timelines the system stores, schedules and shows, as WidgetKit
/// does: registers the widgets that people have placed, reports which are stale, and builds only
/// those.
///
/// The app and its widget extension make one each, with the same id and directory.
public actor GatewayClient {
    /// The app's bundle id.
    public nonisolated let app: String
    /// The id that the app generated at its first launch; shared with the extension.
    public nonisolated let client: String
    /// The longest time that a timeline provider waits for the gateway. When it has passed, the
    /// provider builds as if its timeline were stale.
    public nonisolated let askLimit: Duration

    /// The age up to which an answer serves the other providers of the process: a push makes
    /// WidgetKit call them all. The next change becomes a push later than this.
    static let answerAgeMax = Duration.milliseconds(500)

    let service: GatewayService
    let verifier: any NotificationVerifying
    let cache: TimelineCache
    let registration: @Sendable () async throws -> ClientRegistration
    let reloadWithSystem: @Sendable (StaleContent) async -> Void
    private let clock: @Sendable () -> ContinuousClock.Instant
    private let pause: @Sendable (Duration) async -> Void
    private let origin: ContinuousClock.Instant
    var serverTime = ServerTime()
    /// The members shared between the app's processes that this process registered last, when it
    /// reconciled with another process's registration.
    var sharedRegistered: ClientRegistration?
    private var question: Question?

    /// Creates a client.
    ///
    /// - Parameters:
    ///   - connection: The connection to the gateway.
    ///   - verifier: Checks that notifications are signed by the gateway.
    ///   - directory: The directory for timelines and cursors. The app and its extension share it,
    ///     for example in their app group; no other program may use it.
    ///   - askLimit: The longest time that a timeline provider waits for the gateway.
    ///   - reload: Tells the system to make content anew. Default: WidgetKit, where there is one.
    ///   - registration: Returns the placed widgets and controls, the recommendation sets and the
    ///     addresses of this client. Called whenever the gateway needs the registration. If it
    ///     throws, the previous registration stays in force.
    /// - Returns: `nil` unless `app` and `client` are 1 to 128 of `A-Za-z0-9._~-`.
    public init?(
        app: String, client: String, connection: any GatewayConnection,
        verifier: any NotificationVerifying, directory: URL, askLimit: Duration = .seconds(2),
        reload: @escaping @Sendable (StaleContent) async -> Void = StaleContent.reloadWithWidgetKit,
        registration: @escaping @Sendable () async throws -> ClientRegistration
    ) {
        self.init(
            app: app, client: client, connection: connection, verifier: verifier,
            cache: TimelineCache(directory: directory), askLimit: askLimit, reload: reload,
            registration: registration, clock: { .now },
            pause: { duration in try? await Task.sleep(for: duration) })
    }

    /// `pause` returns after a duration, or when the calling task is cancelled.
    init?(
        app: String, client: String, connection: any GatewayConnection,
        verifier: any NotificationVerifying, cache: TimelineCache,
        askLimit: Duration = .seconds(2),
        reload: @escaping @Sendable (StaleContent) async -> Void,
        registration: @escaping @Sendable () async throws -> ClientRegistration,
        clock: @escaping @Sendable () -> ContinuousClock.Instant,
        pause: @escaping @Sendable (Duration) async -> Void
    ) {
        guard Identifier.isValid(app), Identifier.isValid(client) else { return nil }
        self.app = app
        self.client = client
        self.askLimit = askLimit
        service = GatewayService(connection: connection, app: app)
        self.verifier = verifier
        self.cache = cache
        self.registration = registration
        reloadWithSystem = reload
        self.clock = clock
        self.pause = pause
        origin = clock()
    }

    /// The time since this client was created.
    var now: Duration { origin.duration(to: clock()) }

    // MARK: What is placed

    /// Registers what is currently placed. Call it when the system reports that widgets, controls
    /// or push tokens changed, and when the app launches.
    ///
    /// - Returns: The gateway's warnings, such as a kind that is not in the catalog, for the log of
    ///   a developer.
    /// - Throws: ``GatewayFailure``; the previous registration then stays in force.
    @discardableResult
    public func register() async throws(GatewayFailure) -> [Fault] {
        try await register(with: nil).warnings
    }

    /// Registers the app's ordinary push token, with everything else: by it the gateway wakes the
    /// app when a recommendation set is stale. Call it in
    /// `application(_:didRegisterForRemoteNotificationsWithDeviceToken:)`. The token is stored, and
    /// becomes part of every later registration.
    ///
    /// - Parameter environment: `production`, or `sandbox` for builds signed for development.
    /// - Returns: The gateway's warnings.
    /// - Throws: ``GatewayFailure``; the token is then registered with the next registration.
    @discardableResult
    public func register(
        deviceToken: Data, environment: String = "production"
    ) async throws(GatewayFailure) -> [Fault] {
        cache.appAddress = .push(.background, token: deviceToken, environment: environment)
        return try await register()
    }

    /// Registers the Live Activities of a type that run now, and the address at which others can be
    /// started, with everything else. They are stored, and become part of every later registration:
    /// a widget extension, which registers too, does not see them.
    package func register(
        activities: [RegisteredActivity], start: DeliveryAddress?, ofType type: String
    ) async throws(GatewayFailure) {
        var live = cache.live
        live.activities = live.activities.filter { $0.type != type } + activities
        live.activityStarts.removeAll { $0.type == type }
        if let start { live.activityStarts.append(.init(type: type, delivery: start)) }
        cache.live = live
        try await register()
    }

    // MARK: In a timeline provider

    /// Returns the timeline of a widget: the last one built if the gateway confirms that nothing it
    /// depends on has changed, otherwise the result of `build`. Tells the gateway what is current,
    /// so that it pushes none of it again.
    ///
    /// Waits at most ``askLimit`` for the gateway, `build` apart. A failure to ask the gateway, or
    /// to verify its notifications, never hides a change: the timeline is built, and the gateway
    /// asked again the next time.
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
        let widget = widget.normalized
        let kept = cache.kept(widget)
        let begun = now
        let asked = await boundedAnswer(about: widget, since: kept?.cursor)
        var left = askLimit - (now - begun)
        if !asked.isStale, let text = kept?.timeline,
            let value = try? JSONDecoder().decode(Value.self, from: Data(text.utf8)),
            isUsable(value)
        {
            cache.move(widget, from: kept?.cursor, to: asked.cursor)
            await acknowledge([], within: left)
            return value
        }
        let start = now
        // If this throws, the stored timeline keeps its own cursor and stays as stale as before.
        let value = try await build()
        let milliseconds = (now - start).milliseconds
        let encoder = JSONEncoder()
        // Equal values have equal texts then, in every process.
        encoder.outputFormatting = .sortedKeys
        let text = (try? encoder.encode(value)).map { String(decoding: $0, as: UTF8.self) }
        cache.keep(.init(cursor: asked.cursor, timeline: text), of: widget)
        // Until now the widget held the lowest cursor back.
        if kept == nil, let told = asked.told { advance(by: told) }
        if asked.isLate { left = .zero }
        await acknowledge(
            [
                AcknowledgementBody.timeline(
                    ofKind: widget.kind, widget.parameters, "ms", .integer(milliseconds),
                    isUnchanged: text != nil && text == kept?.timeline)
            ], within: left)
        return value
    }

    /// The gateway's answer about one timeline.
    private struct Answer: Sendable {
        let isStale: Bool
        /// The cursor for a timeline built from data that is fetched from now on.
        let cursor: Cursor?
        /// The answer about all widgets, if it came from one.
        var told: PollResult?
        /// Whether the gateway did not answer in time.
        var isLate = false
    }

    /// Asks about a widget, but waits no longer than ``askLimit``. The question goes on, for the
    /// next provider.
    private func boundedAnswer(
        about widget: ConfiguredWidget, since cursor: Cursor?
    ) async -> Answer {
        // Every provider of the process together waits once for a gateway that is silent.
        let waited: Duration = question.map { $0.isAnswered ? .zero : now - $0.begun } ?? .zero
        let task = Task { await answer(about: widget, since: cursor) }
        if waited < askLimit, let answer = await value(of: task, within: askLimit - waited) {
            return answer
        }
        // Data that is fetched now includes every change up to an earlier cursor.
        return Answer(isStale: true, cursor: cursor ?? cache.systemCursor, isLate: true)
    }

    private func answer(about widget: ConfiguredWidget, since cursor: Cursor?) async -> Answer {
        do throws(GatewayFailure) {
            guard isRegistered(widget) else {
                return Answer(isStale: true, cursor: try await register(with: widget).cursor)
            }
            if let lowest = cache.lowestCursor {
                // An answer since the lowest cursor is about every stored timeline.
                let told = try await sharedAnswer(to: widget, since: lowest)
                let isStale = !told.confirms(widget, at: cursor)
                // A timeline that is newer may include the change.
                guard let cursor, cursor != told.since, isStale else {
                    return Answer(isStale: isStale, cursor: told.cursor, told: told)
                }
            }
            let told = try await poll(since: cursor, kind: widget.kind)
            return Answer(isStale: !told.confirms(widget, at: cursor), cursor: told.cursor)
        } catch {
            guard case .refused(let problem) = error, problem.status == 404 else {
                return Answer(isStale: true, cursor: cursor ?? cache.systemCursor)
            }
            // The gateway does not know this client, so none of its cursors is valid.
            cache.clear()
            return Answer(isStale: true, cursor: try? await register(with: widget).cursor)
        }
    }

    /// A question about all widgets, whose answer the providers of the process share.
    private struct Question {
        let task: Task<Result<PollResult, GatewayFailure>, Never>
        let begun: Duration
        /// The widgets whose providers asked. One that asks again wants a newer answer.
        var askers: Set<ConfiguredWidget>
        var isAnswered = false
    }

    private func sharedAnswer(
        to widget: ConfiguredWidget, since lowest: Cursor
    ) async throws(GatewayFailure) -> PollResult {
        if let question, !question.isAnswered || now - question.begun < Self.answerAgeMax,
            !question.askers.contains(widget)
        {
            self.question?.askers.insert(widget)
            return try await question.task.value.get()
        }
        let begun = now
        let task = Task { () async -> Result<PollResult, GatewayFailure> in
            let result: Result<PollResult, GatewayFailure>
            do throws(GatewayFailure) {
                let told = try await poll(since: lowest, kind: nil)
                await handOver(told)
                advance(by: told)
                result = .success(told)
            } catch {
                result = .failure(error)
            }
            if question?.begun == begun { question?.isAnswered = true }
            return result
        }
        question = Question(task: task, begun: begun, askers: [widget])
        return try await task.value.get()
    }

    private func isRegistered(_ widget: ConfiguredWidget) -> Bool {
        cache.registered?.widgets.contains { $0.normalized == widget } ?? false
    }

    // MARK: In the app

    /// Asks the gateway what is stale and reloads it with the system. Call it on background pushes,
    /// and when the app launches, after ``register()``.
    ///
    /// If the app renews recommendation sets before the system asks for them, use ``stale()`` and
    /// ``reload(_:)`` instead.
    ///
    /// - Throws: ``GatewayFailure``.
    public func reloadStale() async throws(GatewayFailure) { try await reload(try await stale()) }

    /// Returns the stale content of everything that is placed.
    ///
    /// - Throws: ``GatewayFailure``; `unreadable` for a notification that fails verification.
    public func stale() async throws(GatewayFailure) -> StaleContent {
        question = nil
        let told = try await poll(since: cache.lowestCursor, kind: nil)
        advance(by: told, isHandedOver: false)
        var content = StaleContent(told.notifications, of: told.registration)
        content.cursor = told.cursor
        return content
    }

    /// Reloads stale content with the system, which chooses when; a provider then asks the gateway
    /// which timelines of its kind are stale.
    ///
    /// Relevance and controls count as current from then on. Recommendation sets are registered
    /// again as the app's registration has them now, built at the cursor of `content`: renew them
    /// before.
    ///
    /// - Throws: ``GatewayFailure`` when the sets cannot be registered; they stay stale.
    public func reload(_ content: StaleContent) async throws(GatewayFailure) {
        guard !content.isEmpty else { return await acknowledge([]) }
        await reloadWithSystem(content)
        if let cursor = content.cursor {
            advanceSystem(to: cursor, all: content.all) {
                !content.all && content.timelines.contains($0.kind)
            }
            if !content.recommendations.isEmpty {
                _ = try await register(with: nil, built: content.recommendations, at: cursor)
            }
        }
        await acknowledge([])
    }

    /// Reports content as it becomes stale, until the stream ends or the calling task is cancelled.
    /// For an app in the foreground, whose reloads cost no budget. See ``reloadContinuously()``.
    ///
    /// - Parameter receive: Receives the content, to pass it to ``reload(_:)``.
    /// - Throws: ``GatewayFailure``.
    public func follow(
        _ receive: @Sendable (StaleContent) async -> Void
    ) async throws(GatewayFailure) {
        let since = cache.lowestCursor?.text
        let stream = try await reconciling { digest throws(GatewayFailure) in
            try await NotificationFeed(service: service, client: client, registration: digest)
                .open(since: since)
        }
        serverTime.note(stream.opening.date, now: now)
        try await stream.read { element in
            guard case .notification(let text) = element else { return !Task.isCancelled }
            // An unverified notification ends the stream: the next one resumes before it.
            guard let claims = try? await self.verified(text) else { return false }
            await receive(await self.content(of: claims))
            return !Task.isCancelled
        }
    }

    /// Returns what a notification of a stream names. Timelines are confirmed by their providers;
    /// the rest needs a cursor, which only an answer to a question has.
    private func content(of claims: ReloadNotification) async -> StaleContent {
        question = nil
        let content = StaleContent([claims], of: cache.registered)
        guard content.recommendations.isEmpty, content.ofSystem.isEmpty else {
            return (try? await stale()) ?? content
        }
        return content
    }

    /// Registers, and reloads with the system what becomes stale, until the calling task is
    /// cancelled. Interruptions are retried after a pause. For an app in the foreground:
    /// `.task(id: scenePhase)`. Recommendation sets are registered as by ``reloadStale()``.
    ///
    /// - Throws: A ``GatewayFailure`` of the registration that no retry mends.
    public func reloadContinuously() async throws(GatewayFailure) {
        var backoff = Backoff(first: 1_000, longest: 60_000, jitter: .half)
        while !Task.isCancelled {
            let start = now
            var retryAfter = 0
            do throws(GatewayFailure) {
                try await register()
                // The next registration finds out why a stream was refused or broke off.
                let end: Void? = try? await follow { _ = try? await self.reload($0) }
                // A stream that broke off after a long time was a success, too.
                if end != nil || now - start > .milliseconds(backoff.longest) {
                    backoff.succeeded()
                }
            } catch {
                guard error.mayPass else { throw error }
                if case .refused(let problem) = error { retryAfter = problem.retryAfter ?? 0 }
            }
            let wait = backoff.failed(random: .random(in: 0...UInt64.max))
            await pause(max(.milliseconds(wait), .seconds(retryAfter)))
        }
    }

    // MARK: Progress

    /// Tells the system to make the relevance and controls that an answer names: no provider asks
    /// about these.
    private func handOver(_ told: PollResult) async {
        let content = StaleContent(told.notifications, of: told.registration)
        var rest = content.ofSystem
        // Once only: while a build fails, each answer is `all`, and a reload calls providers again.
        if content.all, told.since == cache.systemCursor {
            // These may be timelines that were never built, or have relevance only.
            let widgets = told.registration?.widgets ?? []
            rest.timelines = Set(widgets.filter { !cache.isBuilt($0) }.map(\.kind))
        }
        if !rest.isEmpty { await reloadWithSystem(rest) }
    }

    /// Advances the stored timelines that an answer confirms, so that an acknowledgement covers the
    /// changes of the others. `isHandedOver`: the system was asked to reload what the answer names.
    private func advance(by told: PollResult, isHandedOver: Bool = true) {
        // Another process may have registered other widgets meanwhile.
        guard let cursor = told.cursor, let digest = told.digest, digest == cache.digest else {
            return
        }
        let all = told.notifications.contains(where: \.all)
        if !told.notifications.isEmpty, all || (cache.owedCursor.map { $0 < cursor } ?? true) {
            cache.owedCursor = cursor
        }
        for widget in told.registration?.widgets ?? [] {
            guard let built = cache.cursor(of: widget), built < cursor,
                told.confirms(widget, at: built)
            else { continue }
            cache.move(widget, from: built, to: cursor)
        }
        if isHandedOver || told.notifications.isEmpty {
            advanceSystem(to: cursor, all: all) { told.names($0) }
        }
    }

    /// Advances the cursor up to which the system was asked to reload, unless a widget that was
    /// never built is stale: its provider has still to build it.
    ///
    /// - Parameter all: Whether the system was asked to reload everything. The cursor may then be
    ///   of another log, and lower.
    private func advanceSystem(
        to cursor: Cursor, all: Bool, unless isStale: (ConfiguredWidget) -> Bool
    ) {
        guard all || (cache.systemCursor.map { $0 < cursor } ?? true),
            cache.registered?.widgets.contains(where: { !cache.isBuilt($0) && isStale($0) }) != true
        else { return }
        cache.systemCursor = cursor
    }

    /// Acknowledges builds, and what is current, so that the gateway need not push it; waits at
    /// most `limit`. A failed acknowledgement is stored, and sent by the next provider.
    private func acknowledge(_ rebuilt: [JSONValue], within limit: Duration) async {
        guard limit > .zero, !rebuilt.isEmpty || cache.owedCursor != nil else { return }
        _ = await value(of: Task { await acknowledge(rebuilt) }, within: limit)
    }

    private func acknowledge(_ rebuilt: [JSONValue]) async {
        guard let cursor = cache.lowestCursor else { return }
        let owed = cache.owedCursor
        let covers = owed.map { $0 <= cursor } ?? false
        // Without a build, a cursor that confirms nothing named is not worth a request.
        guard covers || !rebuilt.isEmpty else { return }
        let body = AcknowledgementBody(cursor: cursor, rebuilt: rebuilt)
        let head = try? await reconciling { digest throws(GatewayFailure) in
            try await service.acknowledge(body.json, client: client, registration: digest)
        }
        if head != nil, covers, cache.owedCursor == owed { cache.owedCursor = nil }
    }
}
