import CCurl
import CurlMulti
import GatewayCore
import Synchronization
import WidgetModel

/// The thread of a pool: performs the actions of its ``APNsPoolMachine`` on its connections.
struct APNsDriver: CurlDriver {
    /// A request of another thread.
    enum Command: Sendable {
        case push(APNsPush, APNsPool.Finished)
        /// Send again after a stop: what APNs refused has been corrected.
        case resume
        /// Accept no more pushes, and resume the continuation once none is in flight.
        case drain(CheckedContinuation<Void, Never>)
        /// Use a requested provider token; `nil` if there is none.
        case fetched(SharedProviderToken?)
        /// A time has come, in monotonic ms, at which the machine asked to be woken.
        case timerFired(Int64)
    }

    private let configuration: APNsPool.Configuration
    private let shared: APNsPool.Shared
    private let fields: APNsFields
    private var machine: APNsPoolMachine
    private var connections: [UInt64: APNsConnection] = [:]
    /// The callbacks of pushes, by their number.
    private var callbacks: [APNsPool.Finished?] = []
    private var drainers: [CheckedContinuation<Void, Never>] = []
    // Reused, so that a push allocates no array.
    private var events: [APNsSession.Event] = []
    private var results: [(APNsPool.Finished, APNsPushResult)] = []

    init(_ configuration: APNsPool.Configuration, _ shared: APNsPool.Shared) {
        self.configuration = configuration
        self.shared = shared
        fields = APNsFields(origin: configuration.origin)
        machine = APNsPoolMachine(
            configuration.terms, random: SplitMix64(seed: .random(in: .min ... .max)))
    }

    mutating func obey(_ command: Command, _ multi: CurlMulti) {
        switch command {
        case .push(let push, let finished):
            let number = Int(machine.add(push))
            if number == callbacks.count { callbacks.append(nil) }
            callbacks[number] = finished
        case .resume: machine.resume()
        case .drain(let continuation):
            machine.drain()
            drainers.append(continuation)
        case .fetched(let token): machine.fetched(token, moment)
        case .timerFired(let time): machine.timerFired(at: time)
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
        _ = applyEvents()
        repeat {
            next = .max
            performActions(multi, now)
            for connection in connections.values {
                connection.flush(multi)
                next = min(next, connection.expire(now: now))
            }
        } while applyEvents()
        report()
        return Int32(clamping: min(60_000, max(0, next - now)))
    }

    mutating func stop(_ multi: CurlMulti) {
        machine.giveUp()
        performActions(multi, now)
        for connection in connections.values { connection.close(multi) }
        connections.removeAll()
        report()
    }

    /// Monotonic milliseconds of the computer, independent of the pool's clock.
    private var now: Int64 { GatewayClock.system.now() }

    private var moment: APNsPoolMachine.Moment {
        let clock = configuration.clock
        return APNsPoolMachine.Moment(now: clock.now(), wall: clock.wallMilliseconds())
    }

    private mutating func performActions(_ multi: CurlMulti, _ now: Int64) {
        let moment = moment
        while let action = machine.next(moment) {
            switch action {
            case .send(let number, let id, let opens):
                if opens {
                    connections[id] = APNsConnection(configuration, fields, multi, now: now)
                }
                guard let flight = machine.flight(number) else { continue }
                let isAccepted = connections[id]?.send(
                    flight.push, id: flight.id, number, token: machine.text(of: flight.token),
                    now: now, wall: moment.wall)
                if isAccepted != true { machine.unsent(number) }
            case .close(let id):
                connections.removeValue(forKey: id)?.close(multi)
            case .fetchToken(let refused):
                fetchToken(refused: refused, moment)
            case .finish(let number, let result):
                guard let finished = callbacks[Int(number)] else { continue }
                callbacks[Int(number)] = nil
                results.append((finished, result))
            case .wake(let time):
                let (clock, shared) = (configuration.clock, shared)
                Task {
                    await clock.sleep(time)
                    shared.submit(.timerFired(time))
                }
            }
        }
    }

    /// Gives the machine a provider token: at once, or later if nodes share it.
    private mutating func fetchToken(
        refused: SharedProviderToken?, _ moment: APNsPoolMachine.Moment
    ) {
        guard case .key(let key) = configuration.credential else { return }
        let (clock, shared) = (configuration.clock, shared)
        guard key.share != nil else { return machine.fetched(key.mint(clock), moment) }
        Task { shared.submit(.fetched(await key.token(refused: refused, clock))) }
    }

    /// Reports the events of all connections to the machine; returns whether there were any.
    private mutating func applyEvents() -> Bool {
        let moment = moment
        var isAny = false
        for (id, connection) in connections {
            connection.takeEvents(into: &events)
            if !events.isEmpty { isAny = true }
            for event in events {
                switch event {
                case .connected: machine.connected(id)
                case .allowed(let streams): machine.allowed(streams, on: id)
                case .retired: machine.retire(id)
                case .ended(let number, let outcome, let uniqueID):
                    machine.ended(number, outcome, uniqueID: uniqueID, moment)
                }
            }
        }
        return isAny
    }

    /// Publishes the figures before it calls back, because the callbacks may read them.
    private mutating func report() {
        shared.figures.withLock { $0 = machine.figures }
        for (finished, result) in results { finished(result) }
        results.removeAll(keepingCapacity: true)
        guard machine.isDrained else { return }
        for drainer in drainers { drainer.resume() }
        drainers.removeAll()
    }
}
