/// Kept-alive connections that send requests and wait for 2xx answers.
final class Requester: ConnectionUser {
    private static let timeoutSeconds = 60.0

    private let generator: Generator
    private var connections: [ClientConnection] = []
    private var openCount = 0
    private var next: (() -> [UInt8]?)?
    private var waiting = 0
    /// Requests answered with 2xx.
    private(set) var answered = 0
    /// The reasons of the first failures.
    private(set) var failures: [String] = []
    /// Requests answered otherwise, and connections lost.
    private(set) var failed = 0
    /// When the last answer came, in monotonic nanoseconds.
    private(set) var lastAnswer: Int64 = 0

    /// Opens the connections; returns when they are open. Open them when they are needed: a gateway
    /// closes a connection without requests after a while.
    init(_ generator: Generator, port: UInt16, connections count: Int) throws {
        self.generator = generator
        for number in 0..<count {
            connections.append(
                try generator.connect(.init(port: port, number: number), user: self))
        }
        let isOpen = try generator.run(seconds: Self.timeoutSeconds) {
            openCount == count || failed > 0
        }
        guard isOpen, failed == 0 else {
            throw BenchFailure("no connection for requests: \(failures.first ?? "none in time")")
        }
    }

    /// Sends what `request` returns until it returns `nil`, one request at a time on each
    /// connection, and waits for the answers. Returns the seconds that it took.
    @discardableResult
    func run(_ request: @escaping () -> [UInt8]?) throws -> Double {
        let start = monotonicNanoseconds()
        next = request
        for connection in connections { sendNext(on: connection) }
        try waitForAnswers()
        next = nil
        return Double(lastAnswer - start) / 1e9
    }

    /// Sends one request on the first connection and does not wait.
    func send(_ bytes: [UInt8]) {
        guard let connection = connections.first else { return }
        waiting += 1
        generator.send(bytes, on: connection)
    }

    /// Waits until all answers are there.
    func waitForAnswers() throws {
        var seen = -1
        // The time starts again with each answer.
        while waiting > 0, failed == 0, seen != answered {
            seen = answered
            try generator.run(seconds: Self.timeoutSeconds) { waiting == 0 || failed > 0 }
        }
        if failed > 0 { throw BenchFailure("a request failed: \(failures.first ?? "")") }
        if waiting > 0 { throw BenchFailure("\(waiting) requests were not answered") }
    }

    deinit {
        for connection in connections { generator.close(connection) }
    }

    private func sendNext(on connection: ClientConnection) {
        guard let bytes = next?() else { return }
        waiting += 1
        generator.send(bytes, on: connection)
    }

    func opened(_ connection: ClientConnection) { openCount += 1 }

    func answered(_ connection: ClientConnection, status: Int, body: [UInt8]) {
        waiting -= 1
        lastAnswer = monotonicNanoseconds()
        if (200..<300).contains(status) {
            answered += 1
        } else {
            fail("\(status): \(String(decoding: body.prefix(500), as: UTF8.self))")
        }
        sendNext(on: connection)
    }

    func closed(_ connection: ClientConnection, reason: String) { fail(reason) }

    private func fail(_ reason: String) {
        failed += 1
        if failures.count < 5 { failures.append(reason) }
    }
}
