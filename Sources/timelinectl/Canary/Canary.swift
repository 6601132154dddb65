import Foundation
import GatewayDocuments
import TimelineRuntime
import WidgetModel

/// A client of its own that posts changes of its own and follows them.
actor Canary {
    private let service: GatewayService
    private let verifier: PublishedKeyVerifier
    private let client: String
    private let plan: CanaryPlan
    private let patience: Duration
    private let origin = ContinuousClock.now
    private var serverTime = ServerTime()
    private var cursor: Cursor?

    init(service: GatewayService, client: String, plan: CanaryPlan, patience: Duration) {
        self.service = service
        self.client = client
        self.plan = plan
        self.patience = patience
        verifier = PublishedKeyVerifier(connection: service.connection, app: service.app)
    }

    /// Registers the client, initially or after the gateway has forgotten it.
    func register() async throws(GatewayFailure) {
        let answer = try await service.json(
            "PUT", service.base(ofClient: client), body: plan.registration)
        let registered = try Registered(answer: answer.value)
        cursor = Cursor(text: registered.cursor)
        guard cursor != nil else {
            throw .unreadable("the response to the registration has no valid cursor")
        }
    }

    /// Removes the registration.
    func leave() async {
        _ = try? await service.json("DELETE", service.base(ofClient: client))
    }

    /// Posts one change and follows it.
    func round() async -> CanaryRound {
        do throws(GatewayFailure) {
            do throws(GatewayFailure) {
                return try await follow()
            } catch {
                guard case .refused(let problem) = error, problem.status == 404 else { throw error }
                // Unseen for too long, or the app was created anew: the client registers again.
                try await register()
                return try await follow()
            }
        } catch {
            return .failed(Terminal.line(of: error))
        }
    }

    private func follow() async throws(GatewayFailure) -> CanaryRound {
        if cursor == nil { try await register() }
        // Open the stream first: a change that arrives earlier would be delivered by a catch-up.
        let stream = try await NotificationFeed(service: service, client: client)
            .open(since: cursor?.text)
        serverTime.note(stream.opening.date, now: origin.duration(to: .now))
        let posted = ContinuousClock.now
        let answer = try await service.document(
            "POST", "\(service.base)/changes",
            body: plan.event(id: UUID().uuidString).serialized,
            contentType: "application/cloudevents+json")
        let taken = try ChangesTaken(answer: answer.value)
        guard taken.sequence > 0 else {
            throw .unreadable("the response to the change has no sequence")
        }
        guard taken.unmatched == 0 else {
            return .failed("the change matched no rule: the catalog was replaced; restart")
        }
        let ear = CanaryListener(
            plan: plan, verifier: verifier, sequence: taken.sequence, posted: posted)
        await listen(stream, with: ear)
        if let reason = await ear.forgery { return .forged(reason) }
        guard let notified = await ear.notified, let covered = await ear.covered else {
            if let failure = await ear.failure { throw failure }
            return .lost(sequence: Int64(clamping: taken.sequence))
        }
        cursor = covered
        _ = try await service.json(
            "POST", "\(service.base(ofClient: client))/acks",
            body: plan.acknowledgement(covered, milliseconds: notified.inMilliseconds))
        return .confirmed(
            sequence: Int64(clamping: taken.sequence), notified: notified,
            confirmed: posted.duration(to: .now))
    }

    /// Reads until a notification of the change and a cursor that covers it arrived, or until
    /// timeout.
    private func listen(_ stream: NotificationFeed.Stream, with ear: CanaryListener) async {
        let seconds = serverTime.seconds(
            now: origin.duration(to: .now), fallback: Int64(Date().timeIntervalSince1970))
        let reading = Task {
            do throws(GatewayFailure) {
                try await stream.read { await ear.take($0, serverTime: seconds) }
            } catch {
                await ear.broke(error)
            }
        }
        let timer = Task { [patience] in
            do { try await Task.sleep(for: patience) } catch { return }
            await ear.giveUp()
            reading.cancel()
        }
        await reading.value
        timer.cancel()
    }
}

/// Listens on a stream for one change.
actor CanaryListener {
    private let plan: CanaryPlan
    private let verifier: PublishedKeyVerifier
    private let sequence: UInt64
    private let posted: ContinuousClock.Instant
    private var hasGivenUp = false

    /// The time from the post to the notification.
    private(set) var notified: Duration?
    /// The first cursor after the notification that covers the change.
    private(set) var covered: Cursor?
    /// The reason why a notification did not verify.
    private(set) var forgery: String?
    /// The failure that ended the stream.
    private(set) var failure: GatewayFailure?

    init(
        plan: CanaryPlan, verifier: PublishedKeyVerifier, sequence: UInt64,
        posted: ContinuousClock.Instant
    ) {
        (self.plan, self.verifier, self.sequence, self.posted) = (plan, verifier, sequence, posted)
    }

    /// - Returns: Whether to continue reading.
    func take(_ element: NotificationFeed.Element, serverTime: Int64) async -> Bool {
        switch element {
        case .retry: return true
        case .moved(let cursor):
            guard notified != nil, cursor.sequence >= sequence else { return true }
            covered = cursor
            return false
        case .notification(let text):
            let heard = posted.duration(to: .now)
            let report = await NotificationReport.of(text, by: verifier, serverTime: serverTime)
            switch report.outcome {
            case .failure(let failure):
                forgery = failure.message
                return false
            case .success(let claims):
                if claims.sequence >= sequence, plan.concerns(claims) { notified = heard }
                return true
            }
        }
    }

    func broke(_ failure: GatewayFailure) {
        if !hasGivenUp { self.failure = failure }
    }

    func giveUp() { hasGivenUp = true }
}
