/// Sends the requests of a shape, one after the other on each of some connections, and counts the
/// answers.
final class AttackLoad: ConnectionUser {
    /// The timeout of answers once no more is sent.
    private static let drainSeconds = 60.0
    /// The time between the loss of a connection and the next attempt, in nanoseconds.
    private static let reconnectPause: Int64 = 20_000_000
    /// Connections are opened from other source addresses than the bystander's.
    static let firstNumber = 1

    private let generator: Generator
    private let port: UInt16
    private let requests: [AttackRequest]
    private var connections: [Int: ClientConnection] = [:]
    private var toConnect: [(number: Int, due: Int64)] = []
    /// The request that each connection waits for, and how many answers are to come.
    private var waiting: [Int: (request: Int, answers: Int)] = [:]
    private var sent: Int
    private var isSending = true

    /// The number of answers, by status.
    private(set) var statuses: [Int: Int] = [:]
    private(set) var lost = 0
    /// Whether each request's answer showed that the gateway read all of it.
    private(set) var isReached: [Bool]
    /// The beginning of each request's first answer that did not.
    private(set) var refusals: [Int: String] = [:]

    /// - Parameter firstRequest: The number of the first request; none is ever to be sent twice.
    init(
        _ generator: Generator, port: UInt16, connections count: Int, requests: [AttackRequest],
        firstRequest: Int
    ) {
        (self.generator, self.port, self.requests) = (generator, port, requests)
        sent = firstRequest
        isReached = [Bool](repeating: false, count: requests.count)
        toConnect = (0..<count).map { (Self.firstNumber + $0, 0) }
    }

    /// Sends for some time, and waits for the answers. Returns the number of the next request.
    func run(seconds: Double) throws -> Int {
        try generator.run(seconds: seconds, timer: { self.connect() }, until: { false })
        isSending = false
        try generator.run(seconds: Self.drainSeconds) { waiting.isEmpty }
        for connection in connections.values { generator.close(connection) }
        lost += waiting.count
        return sent
    }

    private func connect() -> Int64? {
        let now = monotonicNanoseconds()
        for (number, _) in toConnect.filter({ $0.due <= now }) {
            connections[number] = try? generator.connect(
                .init(port: port, number: number), user: self)
            if connections[number] == nil { lose(number) }
        }
        toConnect.removeAll { $0.due <= now }
        return toConnect.map(\.due).min()
    }

    private func lose(_ number: Int) {
        lost += 1
        connections[number] = nil
        waiting[number] = nil
        toConnect.append((number, monotonicNanoseconds() + Self.reconnectPause))
    }

    private func sendNext(on connection: ClientConnection) {
        guard isSending else { return }
        let request = sent % requests.count
        waiting[connection.number] = (request, requests[request].count)
        generator.send(requests[request].bytes(number: sent), on: connection)
        sent += 1
    }

    func opened(_ connection: ClientConnection) { sendNext(on: connection) }

    func answered(_ connection: ClientConnection, status: Int, body: [UInt8]) {
        statuses[status, default: 0] += 1
        guard let (request, answers) = waiting[connection.number] else { return }
        if requests[request].reaching.contains(status) {
            isReached[request] = true
        } else if refusals[request] == nil {
            refusals[request] = "\(status) \(String(decoding: body.prefix(300), as: UTF8.self))"
        }
        waiting[connection.number] = answers > 1 ? (request, answers - 1) : nil
        if answers <= 1 { sendNext(on: connection) }
    }

    func closed(_ connection: ClientConnection, reason: String) {
        // The gateway may close a connection whose body it does not want, after its answer.
        lose(connection.number)
    }
}
