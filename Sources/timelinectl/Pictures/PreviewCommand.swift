import ArgumentParser
import NIOCore
import NIOHTTP1

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
    let page: @Sendable () -> String

    /// Serves until the task is cancelled. Calls `ready` with the port once it accepts connections.
    func run(port: Int, ready: @Sendable (Int) -> Void) async throws {
        let server = LocalServer(connectionTimeMax: .seconds(10), bodyBytesMax: 0) { request in
            // A page of another site must not read this one through a name that leads here.
            guard request.isForThisMachine else { return .init(.forbidden) }
            guard request.head.method == .GET, request.head.uri == "/" else {
                return .init(.notFound)
            }
            return .init(
                .ok, ["Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store"],
                body: page())
        }
        try await server.run(host: "127.0.0.1", port: port, ready: ready)
    }
}
