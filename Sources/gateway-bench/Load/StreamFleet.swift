/// Streams that all hear of the same changes, and what they heard.
final class StreamFleet: ConnectionUser {
    /// Handshakes under way at a time.
    private static let opensAtOnce = 64
    /// So long without anything new is the end of waiting, seconds.
    static let patienceSeconds = 10.0

    private let generator: Generator
    private let target: Target
    private var started = 0
    private var ready: [Bool] = []
    private var readyCount = 0
    private var failures: [String] = []
    /// The streams, by number.
    private(set) var streams: [ClientConnection] = []
    /// Streams that were refused or broke.
    private(set) var failed = 0
    /// What happens in the phase that runs.
    var phase = DeliveryCount()

    /// Opens nothing yet.
    init(_ generator: Generator, _ target: Target) {
        (self.generator, self.target) = (generator, target)
    }

    /// Opens `count` more streams; returns when each is ready.
    ///
    /// - Parameters:
    ///   - receiveBufferBytes: Of their sockets; `nil` for the system's.
    ///   - keepsID: Whether cursors are kept.
    func open(
        _ count: Int, keepsID: Bool = false, receiveBufferBytes: Int32? = nil,
        progress: (Int) -> Void = { _ in }
    ) throws {
        ready += [Bool](repeating: false, count: count)
        streams.reserveCapacity(ready.count)
        var told = readyCount
        let end = { [self] in readyCount == ready.count || failed > 0 }
        func openMore() throws {
            while started < ready.count, started - readyCount < Self.opensAtOnce {
                let settings = ConnectionSettings(
                    port: target.port, number: started,
                    receiveBufferBytes: receiveBufferBytes, isHTTP2: target.isHTTP2)
                let stream = try generator.connect(settings, user: self)
                stream.scanner.keepsID = keepsID
                streams.append(stream)
                started += 1
            }
            if readyCount - told >= 1_000 {
                told = readyCount
                progress(told)
            }
        }
        var seen = -1
        while !end(), seen != readyCount {
            seen = readyCount
            var trouble: (any Error)?
            try generator.run(
                seconds: Self.patienceSeconds,
                timer: {
                    do { try openMore() } catch { trouble = error }
                    return nil
                }, until: { end() || trouble != nil })
            if let trouble { throw trouble }
        }
        guard failed == 0, readyCount == ready.count else {
            throw BenchFailure(
                "\(readyCount) of \(ready.count) streams are open: \(failures.first ?? "no answer")"
            )
        }
    }

    /// Reads nothing more from any of them.
    func stopReading() {
        for stream in streams { generator.stopReading(stream) }
    }

    /// Reads from all of them again.
    func resumeReading() {
        for stream in streams where stream.state != .closed { generator.resumeReading(stream) }
    }

    /// Records and reads of all streams so far.
    var traffic: (records: Int, reads: Int, bytes: Int) {
        streams.reduce(into: (0, 0, 0)) {
            $0 = ($0.0 + $1.records.count, $0.1 + $1.reads, $0.2 + $1.streamBytes)
        }
    }

    /// Starts counting from zero.
    func startPhase() {
        phase = DeliveryCount()
        for stream in streams { stream.events = 0 }
    }

    /// Closes all streams.
    func close() {
        for stream in streams { generator.close(stream) }
    }

    func opened(_ connection: ClientConnection) {
        generator.send(target.streamRequest(connection.number), on: connection)
    }

    func headed(_ connection: ClientConnection, _ head: ResponseHead) {
        if head.status == 200, head.isEventStream, !target.greets { markReady(connection) }
    }

    func answered(_ connection: ClientConnection, status: Int, body: [UInt8]) {
        fail("\(status): \(String(decoding: body.prefix(500), as: UTF8.self))")
    }

    func streamed(_ connection: ClientConnection, events: Int) {
        guard events > 0 else { return }
        if !ready[connection.number] {
            markReady(connection)
        } else {
            let now = monotonicNanoseconds()
            for _ in 0..<events {
                phase.delivered(change: connection.events, at: now)
                connection.events += 1
            }
        }
    }

    func closed(_ connection: ClientConnection, reason: String) {
        fail(reason)
    }

    private func markReady(_ connection: ClientConnection) {
        guard !ready[connection.number] else { return }
        ready[connection.number] = true
        readyCount += 1
    }

    private func fail(_ reason: String) {
        failed += 1
        if failures.count < 5 { failures.append(reason) }
    }
}
