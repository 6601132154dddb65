import Foundation
import WidgetModel

/// The requests of a client, each verified and about the registration in force.
extension GatewayClient {
    // MARK: Registering

    /// Returns what the app wants registered, in the form in which the gateway stores it.
    private func wanted() async throws(GatewayFailure) -> ClientRegistration {
        var wanted: ClientRegistration
        do {
            wanted = try await registration()
        } catch {
            // An error must not look like an app without widgets.
            throw .connection(
                ConnectionError(.noRegistration, "the app failed with \(type(of: error))"))
        }
        wanted.widgets = wanted.widgets.counted
        if let address = cache.appAddress, !wanted.delivery.contains(address) {
            wanted.delivery.append(address)
        }
        let live = cache.live
        wanted.activities += live.activities
        wanted.activityStarts += live.activityStarts
        return wanted
    }

    /// `widget` is certainly placed, even if the app's list lacks it. The recommendation sets of
    /// `kinds` are built at `cursor`.
    func register(
        with widget: ConfiguredWidget?, built kinds: Set<String> = [], at cursor: Cursor? = nil
    ) async throws(GatewayFailure) -> GatewayService.Registered {
        var wanted = try await wanted()
        if let widget, !wanted.widgets.contains(where: { $0.normalized == widget }) {
            wanted.widgets.append(widget)
        }
        for index in wanted.recommendations.indices
        where kinds.contains(wanted.recommendations[index].kind) {
            wanted.recommendations[index].builtAt = cursor?.text
        }
        let answer = try await service.register(wanted, client: client)
        serverTime.note(answer.head["date"], now: now)
        // The system may have made what is new before the gateway watched its data.
        let before = cache.systemCursor == nil ? nil : cache.registered
        var new = StaleContent()
        new.relevance = Set(wanted.widgets.map(\.kind))
            .subtracting(before?.widgets.map(\.kind) ?? [])
        new.controls = Set(
            wanted.controls.filter { control in
                before?.controls.contains { $0.id == control.id && $0.kind == control.kind } != true
            }.map(\.kind))
        if !new.isEmpty { await reloadWithSystem(new) }
        if cache.systemCursor == nil { cache.systemCursor = answer.value.cursor }
        cache.keep(
            registration: wanted.json(maskingTokens: true), digest: answer.value.digest,
            of: wanted.widgets)
        return answer.value
    }

    /// The maximum number of times the registration in force is read until it lacks nothing.
    private static var readingsMax: Int { 4 }

    /// Registers members of the last registration that the one in force lacks, until a reading
    /// shows that none is missing; then adopts that reading's digest.
    ///
    /// If one is missing in every reading, the previous digest is kept. It makes the gateway refuse
    /// the next request, and the request after that reconciles again.
    private func reconcile() async throws(GatewayFailure) {
        var registration = try await wanted()
        if let widgets = cache.registered?.widgets { registration.widgets = widgets }
        var shared = registration
        (shared.widgets, shared.recommendations) = ([], [])
        (shared.activities, shared.activityStarts) = ([], [])
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
            cache.keep(
                registration: registration.json(maskingTokens: true), digest: read.value.digest,
                of: registration.widgets)
            return
        }
    }

    /// Sends a request, and repeats it once after reconciling if another registration was in force
    /// than its digest names.
    func reconciling<Answer: Sendable>(
        _ ask: (_ digest: String?) async throws(GatewayFailure) -> Answer
    ) async throws(GatewayFailure) -> Answer {
        do throws(GatewayFailure) {
            return try await ask(cache.digest)
        } catch {
            guard error.isRegistrationMismatch else { throw error }
            try await reconcile()
            return try await ask(cache.digest)
        }
    }

    // MARK: Asking

    struct PollResult: Sendable {
        let since: Cursor?
        let notifications: [ReloadNotification]
        /// The cursor of a client that has applied the notifications.
        let cursor: Cursor?
        /// The registration that the answer is about.
        let registration: ClientRegistration?
        /// The digest of that registration.
        let digest: String?

        /// Returns whether a timeline with every change up to `built` has those up to ``cursor``;
        /// `false` when it is not known what it has.
        func confirms(_ widget: ConfiguredWidget, at built: Cursor?) -> Bool {
            guard let built else { return false }
            // A later cursor of another epoch may be of a log that is lost.
            let isLater = built.epoch == cursor?.epoch && since.map { $0 <= built } ?? false
            return (built == since || isLater)
                && !notifications.contains {
                    $0.concernsTimeline(ofKind: widget.kind, widget.parameters)
                }
        }

        /// Returns whether the timelines of a widget are named as stale, other than by `all`.
        func names(_ widget: ConfiguredWidget) -> Bool {
            notifications.contains { notification in
                notification.reload.contains {
                    $0.concerns(kind: widget.kind, values: widget.parameters)
                }
            }
        }
    }

    /// Asks what became stale, of one `kind` or, with `nil`, of all.
    func poll(since cursor: Cursor?, kind: String?) async throws(GatewayFailure) -> PollResult {
        let (poll, digest, registered) = try await reconciling { digest throws(GatewayFailure) in
            let feed = NotificationFeed(
                service: service, client: client, kind: kind, registration: digest)
            let registered = cache.registered
            return (try await feed.poll(since: cursor?.text), digest, registered)
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
        return PollResult(
            since: cursor, notifications: notifications, cursor: poll.cursor,
            registration: registered, digest: digest)
    }

    func verified(
        _ notification: String
    ) async throws(VerificationFailure) -> ReloadNotification {
        let seconds = serverTime.seconds(
            now: now, fallback: Int64(Date().timeIntervalSince1970))
        return try await verifier.verify(notification, serverTime: seconds)
    }
}
