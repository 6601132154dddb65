import GatewayTestSupport
import WidgetModel

/// Devices with streams and devices that poll, and the notifications that each received.
struct PackageRun {
    private static let connectionCount = 64

    private let gateway: GatewayProcess
    private let followers: [Follower]
    private let streams: [TestHTTPStream]
    /// The names notified to each device.
    private(set) var told: [String: Set<String>] = [:]
    /// The names that a stream reported twice, except recommendations: a set is owed until it is
    /// acknowledged.
    private(set) var repeated: [String] = []
    private var namesByNotification: [String: [String]] = [:]

    /// Every notification received, each once.
    var notifications: [String] { Array(namesByNotification.keys) }

    /// Registers every device, over several connections at a time; returns them with their cursors
    /// and tokens.
    static func register(
        _ followers: [Follower], _ gateway: GatewayProcess, _ backend: String
    ) throws -> [Follower] {
        var followers = followers
        let tokens = try gateway.clientTokens(
            app: Follower.app, clients: followers.map(\.name))
        let documents = followers.map { ($0.name, $0.document) }
        let warningCounts = followers.map(\.warningCount)
        let cursors = TestHTTPMonitor([String](repeating: "", count: followers.count))
        try onThreads(connectionCount) { number in
            let http = gateway.http(number % 2 == 0 ? .one : .two)
            for index in stride(from: number, to: documents.count, by: connectionCount) {
                let (name, document) = documents[index]
                let answer = try http.register(
                    name, app: Follower.app, token: backend, document)
                guard answer.status == 201,
                    answer["warnings"]?.arrayValue?.count == warningCounts[index],
                    let cursor = answer["cursor"]?.stringValue
                else { throw TestFailure("\(name): \(answer.status) \(answer.text)") }
                cursors.update { $0[index] = cursor }
            }
        }
        for (index, cursor) in cursors.update({ $0 }).enumerated() {
            followers[index].cursor = cursor
            followers[index].token = tokens[index]
        }
        return followers
    }

    /// Opens streams for the first devices and waits until all of them are answered.
    init(_ gateway: GatewayProcess, _ followers: [Follower], streamCount: Int) throws {
        self.gateway = gateway
        self.followers = followers
        streams = followers.prefix(streamCount).enumerated().map { number, follower in
            gateway.stream(
                app: Follower.app, client: follower.name, token: follower.token,
                from: follower.cursor, version: number % 5 == 0 ? .two : .one)
        }
        for (stream, follower) in zip(streams, followers) {
            let head = stream.head(seconds: 60)
            guard head?.status == 200 else {
                throw TestFailure(
                    "\(follower.name): its stream was answered \(head?.status ?? 0)")
            }
        }
        for follower in followers { told[follower.name] = [] }
    }

    /// Posts the changes in batches; returns the sequence of the last one.
    func post(_ changes: [PackageChange], _ backend: String) throws -> UInt64 {
        let http = gateway.http()
        var head: Int64 = 0
        for start in stride(from: 0, to: changes.count, by: 250) {
            let batch = changes[start..<min(start + 250, changes.count)]
            let answer = try http.post(batch.map(\.json), app: Follower.app, token: backend)
            guard answer.status == 202, answer["accepted"]?.integerValue == Int64(batch.count),
                let sequence = answer["sequence"]?.integerValue
            else { throw TestFailure("a batch: \(answer.status) \(answer.text)") }
            head = sequence
        }
        return UInt64(head)
    }

    /// Reads every stream until its id shows that everything up to `head` was sent: a name not
    /// reported by then is missing.
    mutating func readStreams(until head: UInt64) throws {
        for (stream, follower) in zip(streams, followers) {
            var position: UInt64 = 0
            while position < head {
                guard case .block(let block) = stream.next(timeout: 60) else {
                    throw TestFailure(
                        "\(follower.name): its stream stands at \(position) of \(head)")
                }
                if let data = block.data { try hear(data, follower.name, isStream: true) }
                if let id = block.id {
                    let next = try Cursor.sequence(id)
                    guard next >= position else {
                        throw TestFailure("\(follower.name): id \(position), then \(next)")
                    }
                    position = next
                }
            }
        }
        for stream in streams { stream.close() }
    }

    /// Polls for the other devices, each from the cursor of its registration.
    mutating func pollTheOthers() throws {
        let others = Array(followers[streams.count...])
        let answers = TestHTTPMonitor([PollAnswer?](repeating: nil, count: others.count))
        let gateway = gateway
        try onThreads(Self.connectionCount) { number in
            let http = gateway.http(number % 2 == 0 ? .one : .two)
            for index in stride(from: number, to: others.count, by: Self.connectionCount) {
                let follower = others[index]
                let answer = try http.poll(
                    follower.name, app: Follower.app, token: follower.token,
                    since: follower.cursor)
                answers.update { $0[index] = answer }
            }
        }
        for (follower, answer) in zip(others, answers.update({ $0 })) {
            for notification in answer?.notifications ?? [] {
                try hear(notification, follower.name, isStream: false)
            }
        }
    }

    private mutating func hear(
        _ notification: String, _ device: String, isStream: Bool
    ) throws {
        let heard = try namesByNotification[notification] ?? names(in: claims(of: notification))
        namesByNotification[notification] = heard
        for name in heard {
            let isFirst = told[device, default: []].insert(name).inserted
            if !isFirst, isStream, !name.hasPrefix("recommendations ") {
                repeated.append("\(device): \(name)")
            }
        }
    }
}
