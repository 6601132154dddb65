import NIOCore
import NIOHTTP1
import NIOPosix

/// Answers one request on each connection, over plain HTTP.
struct LocalServer: Sendable {
    private typealias Connection = NIOAsyncChannel<HTTPServerRequestPart, HTTPServerResponsePart>

    struct Request: Sendable {
        let head: HTTPRequestHead
        fileprivate(set) var body: [UInt8] = []

        /// Whether its `Host` is a name that always means this machine.
        var isForThisMachine: Bool {
            let host = head.headers.first(name: "Host")?.split(separator: ":").first
            return host == "127.0.0.1" || host == "localhost"
        }
    }

    struct Answer: Sendable {
        let status: HTTPResponseStatus
        let headers: HTTPHeaders
        let body: String

        init(_ status: HTTPResponseStatus, _ headers: HTTPHeaders = [:], body: String = "") {
            (self.status, self.headers, self.body) = (status, headers, body)
        }
    }

    /// The number of connections at the same time; more wait.
    private static let connectionsMax = 16

    /// The time after which a connection is closed, whatever its client does.
    let connectionTimeMax: TimeAmount
    /// The limit of a request's body, bytes.
    let bodyBytesMax: Int
    /// The time that a client has for its request.
    var requestTimeMax = TimeAmount.seconds(10)
    /// Refuses a request by its head. Its body is then not kept.
    var refusal: @Sendable (Request) -> Answer? = { _ in nil }
    let answer: @Sendable (Request) async -> Answer

    /// Serves until the task is cancelled. Calls `ready` with the port once it accepts connections.
    func run(host: String, port: Int, ready: @Sendable (Int) -> Void) async throws {
        let timeMax = connectionTimeMax
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .bind(host: host, port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    channel.eventLoop.scheduleTask(in: timeMax) {
                        channel.close(mode: .all, promise: nil)
                    }
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline(
                        withErrorHandling: true)
                    return try Connection(wrappingChannelSynchronously: channel)
                }
            }
        ready(server.channel.localAddress?.port ?? port)
        try await withThrowingTaskGroup(of: Void.self) { group in
            try await server.executeThenClose { connections in
                var count = 0
                for try await connection in connections {
                    count += 1
                    if count > Self.connectionsMax { _ = try await group.next() }
                    group.addTask { await serve(connection) }
                }
            }
        }
    }

    /// Answers one request; a client opens another connection for the next.
    private func serve(_ connection: Connection) async {
        // A client that leaves ends its connection with an error, which is ignored.
        try? await connection.executeThenClose { parts, responses in
            let channel = connection.channel
            let deadline = channel.eventLoop.scheduleTask(in: requestTimeMax) {
                channel.close(mode: .all, promise: nil)
            }
            var request: Request?
            var refused: Answer?
            var count = 0
            reading: for try await part in parts {
                switch part {
                case .head(let head):
                    let begun = Request(head: head)
                    (request, refused) = (begun, refusal(begun))
                case .body(let bytes):
                    count += bytes.readableBytes
                    if count > bodyBytesMax { break reading }
                    if refused == nil { request?.body += Array(buffer: bytes) }
                case .end: break reading
                }
            }
            deadline.cancel()
            guard let request else { return }
            if count > bodyBytesMax, refused == nil {
                refused = .init(
                    .payloadTooLarge, body: "a body may have at most \(bodyBytesMax) bytes")
            }
            let answer: Answer
            if let refused { answer = refused } else { answer = await self.answer(request) }
            var headers = answer.headers
            headers.add(name: "Connection", value: "close")
            if answer.status != .noContent {
                headers.add(name: "Content-Length", value: "\(answer.body.utf8.count)")
            }
            let head = HTTPResponseHead(version: .http1_1, status: answer.status, headers: headers)
            try await responses.write(.head(head))
            if !answer.body.isEmpty {
                try await responses.write(.body(.byteBuffer(ByteBuffer(string: answer.body))))
            }
            try await responses.write(.end(nil))
        }
    }
}
