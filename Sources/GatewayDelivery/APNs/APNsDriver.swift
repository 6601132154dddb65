import CCurl
import CurlMulti
import GatewayCore
import Synchronization

/// The pool's thread: its decisions and its connections.
struct APNsDriver: CurlDriver {
    /// What the thread is asked to do.
    enum Command: Sendable {
        /// Send a push.
        case push(APNsPush, APNsPool.Finished)
        /// Send again what APNs refused.
        case resume
        /// Take no more pushes, and resume once none is under way.
        case drain(CheckedContinuation<Void, Never>)
        /// Another token was looked for.
        case fetched(SharedProviderToken?)
        /// A moment of the pool's clock has come.
        case rang(Int64)
    }

    private let configuration: APNsPool.Configuration
    private let outside: APNsPool.Outside
    private let fields: APNsFields
    private let trust: DeliveryTrust
    private var state: APNsPoolState
    private var connections: [UInt64: APNsConnection] = [:]
    /// What happened on a connection, and what is due, each in the same memory again and again.
    private var events: [APNsSession.Event] = []
    private var due = APNsPoolState.Due()

    init(_ configuration: APNsPool.Configuration, _ outside: APNsPool.Outside) {
        self.configuration = configuration
        self.outside = outside
        fields = APNsFields(origin: configuration.origin)
        trust = DeliveryTrust(configuration.trust, configuration.identity)
        state = APNsPoolState(configuration)
    }

    mutating func obey(_ command: Command, _ multi: CurlMulti) {
        switch command {
        case .push(let push, let finished): state.add(push, finished)
        case .resume: state.stops.removeAll()
        case .drain(let continuation): state.drain(continuation)
        case .fetched(let token): state.fetched(token, moment)
        case .rang(let moment): state.timerRang(at: moment)
        }
    }

    mutating func ended(_ easy: CurlEasy, _ code: CURLcode, _ multi: CurlMulti) {
        guard let context = easy.context else { return }
        // Sound: the context is the connection, which `connections` keeps as long as its handle is
        // in `multi`.
        Unmanaged<APNsConnection>.fromOpaque(context).takeUnretainedValue()
            .connected(code, multi, now: now)
    }

    mutating func ready(_ socket: curl_socket_t, _ multi: CurlMulti) {
        connections.values.first { $0.socket == socket }?.read()
    }

    mutating func turned(_ multi: CurlMulti) -> Int32 {
        let now = now
        var next = Int64.max
        _ = takeEvents()
        repeat {
            next = .max
            pump(multi, now)
            for connection in connections.values {
                connection.flush(multi)
                next = min(next, connection.expire(now: now))
            }
        } while takeEvents()
        report()
        return Int32(clamping: min(60_000, max(0, next - now)))
    }

    mutating func stop(_ multi: CurlMulti) {
        state.giveUp()
        for connection in connections.values { connection.close(multi) }
        connections.removeAll()
        report()
    }

    // MARK: One turn

    /// Monotonic milliseconds of this machine, whatever the pool's clock says.
    private var now: Int64 { DeliveryClock.system.now() }
    private var moment: APNsPoolState.Moment { APNsPoolState.Moment(configuration.clock) }

    /// Hands pushes to connections, as many as may be sent.
    private mutating func pump(_ multi: CurlMulti, _ now: Int64) {
        let moment = moment
        while let step = state.next(moment) {
            switch step {
            case .close(let lane):
                connections.removeValue(forKey: lane)?.close(multi)
            case .send(let number, let lane, let opens):
                if opens {
                    connections[lane] = APNsConnection(
                        configuration, trust, fields, multi, now: now)
                }
                guard let flight = state.flight(number) else { continue }
                let isTaken = connections[lane]?.send(
                    flight.push, id: flight.id, number, token: state.text(of: flight.token),
                    now: now, wall: moment.wall)
                if isTaken != true { state.unsent(number) }
            }
        }
    }

    /// Tells the pool what happened on its connections.
    ///
    /// - Returns: Whether anything did.
    private mutating func takeEvents() -> Bool {
        let moment = moment
        var isAny = false
        for (lane, connection) in connections {
            connection.takeEvents(into: &events)
            if !events.isEmpty { isAny = true }
            for event in events {
                switch event {
                case .connected: state.connected(lane)
                case .allowed(let streams): state.allowed(streams, on: lane)
                case .retired: state.retire(lane)
                case .ended(let number, let ending): state.ended(number, ending, moment)
                }
            }
        }
        return isAny
    }

    /// Has the rest of the process know.
    private mutating func report() {
        state.takeDue(into: &due)
        outside.figures.withLock { $0 = state.figures }
        for (finished, result) in due.results { finished(result) }
        for drainer in due.drainers { drainer.resume() }
        if let moment = due.timer { wake(at: moment) }
        if due.wantsToken { fetchToken(refused: due.refused) }
        // What they hold is not to be kept until something else happens.
        due.results.removeAll(keepingCapacity: true)
        due.drainers.removeAll()
    }

    private func wake(at moment: Int64) {
        let (clock, outside) = (configuration.clock, outside)
        Task {
            await clock.sleep(moment)
            outside.submit(.rang(moment))
        }
    }

    private func fetchToken(refused: SharedProviderToken?) {
        guard case .key(let key) = configuration.credential else { return }
        let (clock, outside) = (configuration.clock, outside)
        Task { outside.submit(.fetched(await key.token(refused: refused, clock))) }
    }
}
