/// Connections that ask one thing each, and are closed.
final class PlainRequests: ConnectionUser {
    private static let inFlightMax = 64
    private static let timeoutSeconds = 20.0

    private let generator: Generator
    private let port: UInt16
    private var request: (Int) -> [UInt8] = { _ in [] }
    private var (started, done) = (0, 0)
    private var failures: [String] = []

    /// Opens nothing yet.
    init(_ generator: Generator, port: UInt16) { (self.generator, self.port) = (generator, port) }

    /// Opens `count` connections, a few at a time. `request` makes the request of a connection by
    /// its number.
    func run(_ count: Int, request: @escaping (Int) -> [UInt8]) throws {
        (started, done, failures) = (0, 0, [])
        self.request = request
        var failure: (any Error)?
        var seen = -1
        while done < count, failures.isEmpty, failure == nil, seen != done {
            seen = done
            try generator.run(
                seconds: Self.timeoutSeconds,
                timer: { [self] in
                    while started < count, started - done < Self.inFlightMax, failure == nil {
                        do {
                            _ = try generator.connect(
                                .init(port: port, number: started), user: self)
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
            throw BenchFailure(
                "\(done) of \(count) requests: \(failures.first ?? "no answer")")
        }
    }

    func opened(_ connection: ClientConnection) {
        generator.send(request(connection.number), on: connection)
    }

    func answered(_ connection: ClientConnection, status: Int, body: [UInt8]) {
        guard (200..<300).contains(status) else {
            failures.append("\(status): \(String(decoding: body.prefix(500), as: UTF8.self))")
            return
        }
        done += 1
        generator.close(connection)
    }

    func closed(_ connection: ClientConnection, reason: String) { failures.append(reason) }
}
