import ArgumentParser
import NIOCore
import NIOHTTP1
import NIOPosix

struct PreviewCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "preview",
        abstract: "Serve pictures of a client's widgets to a browser while they change.",
        discussion: """
            Serves the page of `timelinectl show --format html --gallery`, over plain HTTP on this \
            machine alone. It reloads within two seconds after what the archive shows has changed: \
            when a notification of the gateway had a timeline rebuilt, or when the program was \
            started again with changed widgets. Ctrl-C ends it.

            Examples:
              timelinectl preview state/device-1
              timelinectl preview state/device-1 --kind com.mygame.quests --port 9000
            """)

    @OptionGroup var picture: PictureOptions

    @Option(help: "Port on this machine; 0 for any that is free.")
    var port: UInt16 = 8_787

    func run() async throws {
        // A mistake in the command line is reported here rather than in the browser.
        _ = try picture.selection()
        let options = picture
        let server = PreviewServer {
            do {
                return try PicturePage(galleryOf: options, isLive: true).html
            } catch {
                // The client may have removed a widget or the archive; both may come back.
                return PicturePage(title: "\(error)", sections: [], isLive: true).html
            }
        }
        do {
            try await server.run(port: Int(port)) {
                Terminal.print("ready http://127.0.0.1:\($0)/")
            }
        } catch {
            throw ValidationError("--port: cannot serve on port \(port), try another: \(error)")
        }
    }
}

/// Serves one page to browsers of this machine, over plain HTTP.
struct PreviewServer: Sendable {
    private typealias Connection = NIOAsyncChannel<HTTPServerRequestPart, HTTPServerResponsePart>

    /// The number of connections at the same time; more wait.
    private static let connectionsMax = 16
    /// The time after which a connection is closed, whatever its browser does.
    private static let connectionTimeMax = TimeAmount.seconds(10)

    let page: @Sendable () -> String

    /// Serves until the task is cancelled. Calls `ready` with the port once it accepts connections.
    func run(port: Int, ready: @Sendable (Int) -> Void) async throws {
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .bind(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    channel.eventLoop.scheduleTask(in: Self.connectionTimeMax) {
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

    /// Answers one request; a browser opens another connection for the next.
    private func serve(_ connection: Connection) async {
        // A browser that leaves ends its connection with an error, which is ignored.
        try? await connection.executeThenClose { requests, responses in
            for try await case .head(let head) in requests {
                // A page of another site must not read this one through a name that leads here.
                let host = head.headers.first(name: "Host")?.split(separator: ":").first
                let isOurs = host == "127.0.0.1" || host == "localhost"
                let isPage = isOurs && head.method == .GET && head.uri == "/"
                let headers: HTTPHeaders = [
                    "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store",
                    "Connection": "close",
                ]
                let status: HTTPResponseStatus = isPage ? .ok : isOurs ? .notFound : .forbidden
                let answer = HTTPResponseHead(version: .http1_1, status: status, headers: headers)
                try await responses.write(.head(answer))
                let body = ByteBuffer(string: isPage ? page() : "")
                try await responses.write(.body(.byteBuffer(body)))
                return try await responses.write(.end(nil))
            }
        }
    }
}
