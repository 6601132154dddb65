import ArgumentParser
import CLinux
import CurlMulti
import Foundation
import WidgetModel

/// Runs the command on other threads while the main thread waits. The runtime would end the main
/// thread, and tools that follow a process by it, such as instruction counters, would lose the
/// process.
@main
enum Main {
    static func main() {
        // Before any key is read. It cannot fail: both only give up rights.
        _ = gateway_forbid_dumps()
        keepOpenSSLAtExit()
        Task.detached {
            await TimelineGateway.main()
            exit(EXIT_SUCCESS)
        }
        while true { pause() }
    }
}

struct TimelineGateway: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "timeline-gateway",
        abstract: "Notifies clients which widgets and recommendations are stale.",
        discussion: """
            Exit codes: 0 success; 1 failure; 64 invalid usage; 78 invalid configuration.

            EXAMPLES
              timeline-gateway serve --data ./data
              timeline-gateway check-config --config gateway.yaml
              timeline-gateway token --data ./data --app com.mygame --scope changes:write
            """,
        version: productBuild,
        subcommands: [
            Serve.self, CheckConfig.self, Keys.self, Token.self, Epoch.self, Cluster.self,
            Move.self, Reference.self,
        ])
}

extension ExitCode {
    /// `EX_CONFIG` of sysexits(3).
    static let wrongConfiguration = ExitCode(78)
}

/// Writes to standard error: everything but a command's answer.
func complain(_ text: String) {
    FileHandle.standardError.write(Data((text + "\n").utf8))
}

/// Writes an answer to standard output without buffering: other programs may wait for it on a pipe.
func answer(_ text: String, terminator: String = "\n") {
    FileHandle.standardOutput.write(Data((text + terminator).utf8))
}
