/// Readers of streams that send, as fast as possible, unwanted records that TLS has to read.
/// A stream that the gateway ends is opened again.
final class TalkingReaders: ConnectionUser {
    /// The kind of records.
    enum Talk: Sendable {
        case tinyRecords
        /// Key updates that ask for one in return.
        case keyUpdates
    }

    /// The time between two pieces of talk, in nanoseconds.
    private static let pause: Int64 = 1_000_000
    /// The size of one piece of talk.
    private static let (records, updates) = (128, 16)
    /// The time between the end of a stream and the next attempt, in nanoseconds.
    private static let reconnectPause: Int64 = 20_000_000

    private let generator: Generator
    private let port: UInt16
    private let requests: [[UInt8]]
    private let talk: Talk
    private var talking: [Int: ClientConnection] = [:]
    private var open: [Int: ClientConnection] = [:]
    private var toConnect: [(number: Int, due: Int64)]

    /// The number of answers to requests for a stream, by status.
    private(set) var statuses: [Int: Int] = [:]
    /// The number of streams that ended.
    private(set) var lost = 0

    /// - Parameter requests: The request that opens each reader's stream.
    init(_ generator: Generator, port: UInt16, requests: [[UInt8]], talk: Talk) {
        (self.generator, self.port, self.requests) = (generator, port, requests)
        self.talk = talk
        toConnect = requests.indices.map { ($0, 0) }
    }

    /// Talks for some time, and closes the streams.
    func run(seconds: Double) throws {
        try generator.run(seconds: seconds, timer: { self.tick() }, until: { false })
        for connection in open.values { generator.close(connection) }
    }

    private func tick() -> Int64? {
        let now = monotonicNanoseconds()
        for (number, _) in toConnect.filter({ $0.due <= now }) {
            open[number] = try? generator.connect(
                .init(port: port, number: AttackLoad.firstNumber + number), user: self)
            if open[number] == nil { lose(number) }
        }
        toConnect.removeAll { $0.due <= now }
        for connection in Array(talking.values) where connection.unsent.isEmpty {
            switch talk {
            case .tinyRecords: generator.sendTinyRecords(Self.records, on: connection)
            case .keyUpdates: generator.sendKeyUpdates(Self.updates, on: connection)
            }
        }
        return now + Self.pause
    }

    private func lose(_ number: Int) {
        lost += 1
        talking[number] = nil
        open[number] = nil
        toConnect.append((number, monotonicNanoseconds() + Self.reconnectPause))
    }

    private func number(_ connection: ClientConnection) -> Int {
        connection.number - AttackLoad.firstNumber
    }

    func opened(_ connection: ClientConnection) {
        generator.send(requests[number(connection)], on: connection)
    }

    func headed(_ connection: ClientConnection, _ head: ResponseHead) {
        guard head.isEventStream else { return }
        statuses[head.status, default: 0] += 1
        talking[number(connection)] = connection
    }

    func answered(_ connection: ClientConnection, status: Int, body: [UInt8]) {
        statuses[status, default: 0] += 1
        // A stream is refused while the gateway still counts the one before it.
        generator.close(connection)
        lose(number(connection))
    }

    func closed(_ connection: ClientConnection, reason: String) { lose(number(connection)) }
}
