/// Streams, spread over the gateways, and the count of their deliveries.
final class StreamFleet: ConnectionUser {
    private static let handshakesInFlightMax = 64
    /// The longest wait for anything new.
    static let timeoutSeconds = 10.0

    private let generator: Generator
    private let ports: [UInt16]
    private let tokens: [String]
    private let cursors: [String]?
    private var started = 0
    private var ready: [Bool] = []
    private var readyCount = 0
    private var failures: [String] = []
    private(set) var streams: [ClientConnection] = []
    /// Streams that were refused or broke.
    private(set) var failed = 0
    /// The deliveries of the phase that runs.
    var phase = DeliveryCount()

    /// Opens nothing yet. `tokens` has the token of each client, `cursors` the cursor that each
    /// client's stream continues from; `nil` to start anew.
    init(_ stage: Stage, tokens: [String], cursors: [String]? = nil) {
        generator = stage.generator
        ports = stage.gateways.map(\.port)
        (self.tokens, self.cursors) = (tokens, cursors)
    }

    /// Opens `count` more streams; returns when each is ready. `keepsID` says whether cursors are
    /// kept.
    func open(
        _ count: Int, keepsID: Bool = false, progress: (Int) -> Void = { _ in }
    ) throws {
        ready += [Bool](repeating: false, count: count)
        streams.reserveCapacity(ready.count)
        var reported = readyCount
        let end = { [self] in readyCount == ready.count || failed > 0 }
        func openMore() throws {
            while started < ready.count, started - readyCount < Self.handshakesInFlightMax {
                let stream = try generator.connect(
                    .init(port: ports[started % ports.count], number: started), user: self)
                stream.scanner.keepsID = keepsID
                streams.append(stream)
                started += 1
            }
            if readyCount - reported >= 1_000 {
                reported = readyCount
                progress(reported)
            }
        }
        var seen = -1
        while !end(), seen != readyCount {
            seen = readyCount
            var failure: (any Error)?
            try generator.run(
                seconds: Self.timeoutSeconds,
                timer: {
                    do { try openMore() } catch { failure = error }
                    return nil
                }, until: { end() || failure != nil })
            if let failure { throw failure }
        }
        guard failed == 0, readyCount == ready.count else {
            throw BenchFailure(
                "\(readyCount) of \(ready.count) streams are open: \(failures.first ?? "no answer")"
            )
        }
    }

    /// Bytes of event stream received so far.
    var streamBytes: Int { streams.reduce(0) { $0 + $1.streamBytes } }

    /// Starts counting from zero.
    func startPhase() {
        phase = DeliveryCount()
        for stream in streams { stream.events = 0 }
    }

    deinit { close() }

    func close() {
        for stream in streams { generator.close(stream) }
    }

    func opened(_ connection: ClientConnection) {
        let client = connection.number
        generator.send(
            Request.bytes(
                "GET", Stage.path(ofClient: client) + "/reloads",
                headers: Request.streamFields(token: tokens[client], after: cursors?[client])),
            on: connection)
    }

    func answered(_ connection: ClientConnection, status: Int, body: [UInt8]) {
        fail("\(status): \(String(decoding: body.prefix(500), as: UTF8.self))")
    }

    func streamed(_ connection: ClientConnection, events: Int) {
        guard events > 0 else { return }
        if !ready[connection.number] {
            ready[connection.number] = true
            readyCount += 1
        } else {
            let now = monotonicNanoseconds()
            for _ in 0..<events {
                phase.delivered(change: connection.events, at: now)
                connection.events += 1
            }
        }
    }

    func closed(_ connection: ClientConnection, reason: String) { fail(reason) }

    private func fail(_ reason: String) {
        failed += 1
        if failures.count < 5 { failures.append(reason) }
    }
}
