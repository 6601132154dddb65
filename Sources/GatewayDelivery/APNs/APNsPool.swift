import GatewayCore
import GatewaySigning
import Synchronization

/// Sends pushes to one environment of APNs with one team's key, or with a certificate.
///
/// Pushes go over as few connections as carry them (``GatewayCore/APNsLanes``). What can be mended at
/// once is: a push that APNs has certainly not looked at is sent again by another connection, a
/// provider token that expired is replaced. Everything else is for the caller to do, as the result
/// says. When APNs refuses key or topic, nothing more of that is sent until ``resume()``.
package final class APNsPool: Sendable {
    private let configuration: Configuration
    private let state: Mutex<APNsPoolState>

    /// A pool; no connection is opened before the first push.
    package init(_ configuration: Configuration) {
        self.configuration = configuration
        state = Mutex(APNsPoolState(configuration))
    }

    deinit {
        state.withLock { $0.closeEngines() }
    }

    /// Sends a push and waits for what comes of it. A push that is on its way cannot be taken back,
    /// so that a task which is cancelled waits as well.
    package func push(_ push: APNsPush) async -> APNsPushResult {
        // Made before others are kept out: it takes the longest.
        let token = state.withLock { $0.token(configuration.clock) }
        let fields = try? configuration.fields(of: push, token?.text)
        return await withCheckedContinuation { continuation in
            let flight = APNsPoolState.Flight(
                push: push, continuation: continuation, fields: fields, fieldsToken: token?.number)
            change { $0.add(flight) }
        }
    }

    /// Sends again what APNs refused: the configuration there, or its clock, was mended.
    package func resume() {
        state.withLock { $0.stops.removeAll() }
    }

    /// Takes no more pushes, gives those up that wait, and returns when what is under way has
    /// ended.
    package func drain() async {
        await withCheckedContinuation { continuation in
            change { $0.drain(continuation) }
        }
    }

    /// How much there is to do, and was done.
    package var figures: APNsPoolFigures { state.withLock { $0.figures } }

    // MARK: What happens

    private func change(_ body: (inout APNsPoolState) -> Void) {
        let due = state.withLock { state in
            body(&state)
            pump(&state)
            return state.takeDue()
        }
        for (continuation, result) in due.results { continuation.resume(returning: result) }
        for drainer in due.drainers { drainer.resume() }
        if let moment = due.timer { wake(at: moment) }
        if due.wantsToken { fetchToken(refused: due.refused) }
    }

    private func wake(at moment: Int64) {
        let clock = configuration.clock
        Task { [weak self] in
            await clock.sleep(moment)
            self?.change { $0.timerRang(at: moment) }
        }
    }

    private func fetchToken(refused: SharedProviderToken?) {
        guard case .key(let key) = configuration.credential else { return }
        let clock = configuration.clock
        Task { [weak self] in
            let token = await key.token(refused: refused, clock)
            self?.change { $0.fetched(token, clock) }
        }
    }

    private func pump(_ state: inout APNsPoolState) {
        let clock = configuration.clock
        while let order = state.next(clock) {
            if order.opens {
                let lane = order.lane
                let engine = try? DeliveryEngine(
                    configuration.engine { [weak self] event in
                        self?.change { $0.connection(event, lane) }
                    })
                guard let engine else {
                    state.unsent(order)
                    continue
                }
                state.opened(lane, engine)
            }
            guard let request = configuration.request(order, wall: clock.wall()),
                state.engine(of: order.lane)?.submit(request, tag: order.flight, receiver: self)
                    == true
            else {
                state.unsent(order)
                continue
            }
        }
    }
}

extension APNsPool: DeliveryReceiver {
    package func received(_ outcome: DeliveryOutcome, for tag: UInt64) {
        change { $0.ended(tag, outcome, configuration.clock) }
    }
}

/// How much a pool has to do, and did.
package struct APNsPoolFigures: Sendable, Hashable {
    /// Pushes that wait to be sent.
    package var waiting = 0
    /// Pushes under way.
    package var underWay = 0
    /// Connections in use.
    package var connections = 0
    /// Connections that were opened, or tried to be.
    package var opened = 0
    /// Provider tokens that were minted or taken over from other nodes.
    package var providerTokens = 0
}
