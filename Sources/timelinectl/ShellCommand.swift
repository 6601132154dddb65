import Foundation
import WidgetModel

/// Runs the command that a notification triggers.
enum ShellCommand {
    /// Runs the command to its end; a failure is printed and has no other effect.
    static func run(_ command: String, claims: ReloadNotification) async {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/sh")
        process.arguments = ["-c", command]
        process.environment = environment(
            ProcessInfo.processInfo.environment, claims: claims)
        let status: Int32? = await withCheckedContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do {
                try process.run()
            } catch {
                process.terminationHandler = nil
                continuation.resume(returning: nil)
            }
        }
        switch status {
        case 0: break
        case let status?: Terminal.complain("timelinectl: the command exited with status \(status)")
        case nil: Terminal.complain("timelinectl: cannot run the command")
        }
    }

    /// The command's environment: our own without the token, which the command does not need.
    static func environment(
        _ own: [String: String], claims: ReloadNotification
    ) -> [String: String] {
        var environment = own
        environment["TIMELINE_GATEWAY_TOKEN"] = nil
        environment["TIMELINE_NOTIFICATION"] = claims.json.text
        return environment
    }
}
