import Foundation
import TimelineRuntime
import WidgetModel

/// One device: the SDK's engine on a network connection, with a provider that only takes time.
///
/// It keeps nothing on disk and has no reload budget.
actor SimulatedDevice {
    private let plan: FleetPlan.Device
    private let service: GatewayService
    private let feed: NotificationFeed
    private let verifier: any NotificationVerifying
    private let record: FleetRecord
    private let buildTime: Duration
    private let timelines: [WidgetInfo: Int]
    private let origin = ContinuousClock.now
    /// The newest sequence of all notifications.
    private var toldUpTo: UInt64 = 0
    /// The value of `toldUpTo` when the latest build of each timeline was ordered.
    private var orderedUpTo: [WidgetInfo: UInt64] = [:]
    /// The same of the last completed build. An acknowledgement may claim less than was built: its
    /// cursor waits for changes that the gateway still collapses.
    private var builtUpTo: [WidgetInfo: UInt64] = [:]
    /// The timelines and sequences in the acknowledgement in flight.
    private var acknowledging: [Int: UInt64] = [:]
    private var serverTime = ServerTime()
    private var engine: ReloadEngine
    private var generator: SplitMix64
    private var work: AsyncStream<EngineAction>.Continuation?
    private var timer: (task: Task<Void, Never>, due: Duration)?

    /// Creates a device that does nothing before ``run()``. A rebuild takes between half and one
    /// and a half times `buildTime`. `seed` determines all choices and jitter.
    init(
        _ plan: FleetPlan.Device, service: GatewayService,
        verifier: any NotificationVerifying, record: FleetRecord, buildTime: Duration, seed: UInt64
    ) {
        self.plan = plan
        self.service = service
        feed = NotificationFeed(service: service, client: plan.client.id)
        self.verifier = verifier
        self.record = record
        self.buildTime = buildTime
        timelines = Dictionary(
            plan.registration.widgets.enumerated().map {
                (WidgetInfo($1), plan.firstTimeline + $0)
            }, uniquingKeysWith: { $1 })
        var settings = ReloadEngine.Settings()
        settings.schedule.budgetLimit = nil
        generator = SplitMix64(seed: seed)
        engine = ReloadEngine(
            state: EngineState(), desired: plan.registration, settings: settings,
            seed: generator.next())
    }

    /// Runs until the calling task is cancelled.
    func run() async {
        let (actions, continuation) = AsyncStream.makeStream(of: EngineAction.self)
        work = continuation
        await withDiscardingTaskGroup { group in
            handle(.started([]))
            // Not unbounded: the engine requests each action only once at a time.
            for await action in actions {
                group.addTask { await self.perform(action) }
            }
            group.cancelAll()
        }
        timer?.task.cancel()
        work = nil
    }

    /// Removes the device's registration.
    func forget() async throws(GatewayFailure) {
        _ = try await service.json("DELETE", service.base(ofClient: plan.client.id))
    }

    private var now: Duration { origin.duration(to: .now) }

    private func handle(_ event: EngineEvent) {
        for action in engine.handle(event, now: now, date: Date()) {
            switch action {
            // Later builds are not part of this acknowledgement.
            case .acknowledge(let order): acknowledging = holdings(of: order)
            // Changes are readable before they are posted.
            case .build(let info): orderedUpTo[info] = toldUpTo
            default: break
            }
            work?.yield(action)
        }
        guard let due = engine.nextWake else { return }
        if let timer, timer.due <= due, timer.due > now { return }
        timer?.task.cancel()
        timer = (
            Task { [weak self, origin] in
                try? await Task.sleep(until: origin + due, clock: .continuous)
                if !Task.isCancelled { await self?.woke() }
            }, due
        )
    }

    private func woke() {
        timer = nil
        handle(.woke)
    }

    private func perform(_ action: EngineAction) async {
        switch action {
        // No request states a registration digest, so the gateway never reports a mismatch.
        case .register(let registration), .reconcile(let registration):
            await register(registration)
        case .connect(let attempt, let since): await connect(attempt, since: since)
        case .build(let info): await build(info)
        case .recommend(let kind): handle(.recommended(kind: kind, []))
        case .acknowledge(let acknowledgement): await acknowledge(acknowledgement)
        case .save, .saveBudgets: break
        }
    }

    private func register(_ registration: ClientRegistration) async {
        do throws(GatewayFailure) {
            let answer = try await service.register(registration, client: plan.client.id)
            serverTime.note(answer.head["date"], now: now)
            // A new registration rebuilds everything, whatever was posted.
            record.expectRebuild(of: timelines.values)
            handle(.registered(answer.value.cursor))
        } catch {
            if !Task.isCancelled { record.failed(error) }
            handle(.registrationFailed(error.refusal))
        }
    }

    private func holdings(of acknowledgement: Acknowledgement) -> [Int: UInt64] {
        let cursor = acknowledgement.cursor?.sequence ?? 0
        return Dictionary(
            acknowledgement.rebuilt.compactMap { built in
                timelines[built.widget].map { ($0, max(cursor, builtUpTo[built.widget] ?? 0)) }
            }, uniquingKeysWith: { max($0, $1) })
    }

    private func acknowledge(_ acknowledgement: Acknowledgement) async {
        let rebuilt = acknowledging
        do throws(GatewayFailure) {
            _ = try await service.acknowledge(acknowledgement, client: plan.client.id)
            record.rebuilt(rebuilt)
            handle(.acknowledged)
        } catch {
            if !Task.isCancelled { record.failed(error) }
            handle(.acknowledgementFailed(error.refusal))
        }
    }

    private func connect(_ attempt: Int, since: Cursor?) async {
        var isOpen = false
        var ending = EngineEvent.Ending.closed
        do throws(GatewayFailure) {
            let stream = try await feed.open(since: since?.text)
            isOpen = true
            record.opened()
            serverTime.note(stream.opening.date, now: now)
            handle(.opened(attempt: attempt, resumedFrom: stream.opening.resumedFrom))
            try await stream.read { await self.take($0, attempt) }
        } catch {
            if !Task.isCancelled { record.failed(error) }
            if !isOpen { ending = .refused(error.refusal) }
        }
        if isOpen { record.closed() }
        handle(.ended(attempt: attempt, ending))
    }

    /// - Returns: Whether to continue reading.
    private func take(_ element: NotificationFeed.Element, _ attempt: Int) async -> Bool {
        guard engine.isCurrent(attempt: attempt) else { return false }
        switch element {
        case .retry(let wait): handle(.retryHint(wait))
        case .moved(let cursor): handle(.idMoved(attempt: attempt, cursor))
        case .notification(let text):
            let seconds = serverTime.seconds(
                now: now, fallback: Int64(Date().timeIntervalSince1970))
            do throws(VerificationFailure) {
                let claims = try await verifier.verify(text, serverTime: seconds)
                tell(claims)
                handle(.notification(attempt: attempt, claims))
            } catch {
                record.unverified()
                handle(.verificationFailed(attempt: attempt))
            }
        }
        return engine.isCurrent(attempt: attempt)
    }

    private func tell(_ claims: ReloadNotification) {
        if claims.all { record.expectRebuild(of: timelines.values) }
        let named = timelines.filter { info, _ in
            claims.all
                || claims.reload.contains {
                    $0.concerns(kind: info.kind, values: info.configuration)
                }
        }
        toldUpTo = max(toldUpTo, claims.sequence)
        record.told(Array(named.values))
    }

    private func build(_ info: WidgetInfo) async {
        let time = buildTime * Double.random(in: 0.5...1.5, using: &generator)
        try? await Task.sleep(for: time)
        builtUpTo[info] = orderedUpTo[info]
        handle(.rebuilt(info, milliseconds: Int(time / .milliseconds(1)), reloadDate: nil))
    }
}

/// Sends a client's requests over connections that it shares with other clients.
struct BearerConnection: GatewayConnection {
    let requests: any GatewayConnection
    let streams: any GatewayConnection
    let token: String

    func send(_ request: GatewayRequest) async throws(ConnectionError) -> GatewayResponse {
        try await requests.send(authorized(request))
    }

    func stream(_ request: GatewayRequest) async throws(ConnectionError) -> GatewayStream {
        try await streams.stream(authorized(request))
    }

    private func authorized(_ request: GatewayRequest) -> GatewayRequest {
        var request = request
        request.headers.append((name: "authorization", value: "Bearer \(token)"))
        return request
    }
}

/// Verifies each notification once, however many simulated devices receive it: on real devices the
/// work would not be done by this machine.
actor SharedVerifier: NotificationVerifying {
    private static let keptMax = 4_096

    private let verifier: any NotificationVerifying
    private var verified: [String: ReloadNotification] = [:]

    init(_ verifier: any NotificationVerifying) {
        self.verifier = verifier
    }

    func verify(
        _ notification: String, serverTime: Int64
    ) async throws(VerificationFailure) -> ReloadNotification {
        if let claims = verified[notification] { return claims }
        let claims = try await verifier.verify(notification, serverTime: serverTime)
        if verified.count >= Self.keptMax { verified.removeAll(keepingCapacity: true) }
        verified[notification] = claims
        return claims
    }
}
