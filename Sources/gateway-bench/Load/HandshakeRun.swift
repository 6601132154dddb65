import COpenSSL

/// Connections that shake hands, take their ticket, and go; or ask one thing in between.
final class HandshakeRun: ConnectionUser {
    private static let timeoutSeconds = 20.0

    private let generator: Generator
    private let port: UInt16
    private let inFlightMax: Int
    private var request: ((Int) -> [UInt8])?
    private var recordsAtOpen: [Int: Int] = [:]
    private var ticket: OpaquePointer?
    private var keepsTicket = false
    private var started = 0
    /// Connections that did all they were to do.
    private(set) var done = 0
    /// Of those, the ones whose ticket was taken.
    private(set) var resumed = 0
    private var failures: [String] = []

    /// - Parameter inFlightMax: The most connections in flight.
    init(_ generator: Generator, port: UInt16, inFlightMax: Int = 16) {
        (self.generator, self.port, self.inFlightMax) = (generator, port, inFlightMax)
    }

    deinit { SSL_SESSION_free(ticket) }

    /// Shakes hands once and keeps the ticket, which ``run(_:resuming:request:)`` can then offer.
    func fetchTicket() throws {
        keepsTicket = true
        try run(1)
        keepsTicket = false
        guard ticket != nil else { throw BenchFailure("the server sent no session ticket") }
    }

    /// Opens `count` connections, one after the other.
    ///
    /// - Parameters:
    ///   - resuming: Whether each offers the ticket.
    ///   - request: Makes the request of a connection by its number, whose answer is waited for.
    func run(_ count: Int, resuming: Bool = false, request: ((Int) -> [UInt8])? = nil) throws {
        (started, done, resumed, failures, recordsAtOpen) = (0, 0, 0, [], [:])
        self.request = request
        var failure: (any Error)?
        var seen = -1
        while done < count, failures.isEmpty, failure == nil, seen != done {
            seen = done
            try generator.run(
                seconds: Self.timeoutSeconds,
                timer: { [self] in
                    while started < count, started - done < inFlightMax, failure == nil {
                        let settings = ConnectionSettings(
                            port: port, number: started, resuming: resuming ? ticket : nil)
                        do {
                            _ = try generator.connect(settings, user: self)
                        } catch {
                            failure = error
                        }
                        started += 1
                    }
                    return nil
                }, until: { done == count || !failures.isEmpty || failure != nil })
        }
        if let failure { throw failure }
        guard done == count else {
            throw BenchFailure("\(done) of \(count) handshakes: \(failures.first ?? "no answer")")
        }
    }

    func opened(_ connection: ClientConnection) {
        if connection.isResumed { resumed += 1 }
        if let request {
            generator.send(request(connection.number), on: connection)
        } else {
            recordsAtOpen[connection.number] = connection.records.total
        }
    }

    func received(_ connection: ClientConnection) {
        // The server's first record after the handshake is its ticket: now it, too, is done.
        guard let atOpen = recordsAtOpen[connection.number], connection.records.total > atOpen
        else { return }
        if keepsTicket {
            SSL_SESSION_free(ticket)
            ticket = connection.takeTicket()
        }
        finish(connection)
    }

    func answered(_ connection: ClientConnection, status: Int, body: [UInt8]) {
        guard (200..<300).contains(status) else {
            failures.append("\(status): \(String(decoding: body.prefix(500), as: UTF8.self))")
            return
        }
        finish(connection)
    }

    func closed(_ connection: ClientConnection, reason: String) { failures.append(reason) }

    private func finish(_ connection: ClientConnection) {
        recordsAtOpen[connection.number] = nil
        done += 1
        generator.close(connection)
    }
}
