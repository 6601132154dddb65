import ArgumentParser
import GatewayOperations
import WidgetModel

struct BackupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Back up a running gateway's data directory.",
        discussion: """
            Run on the gateway's machine, as its user. The backup is a directory: a consistent \
            snapshot of the database, the keys, and a manifest with a checksum of each file. It \
            gets its final name when it is complete, and nothing is ever overwritten. The \
            configuration, and the files that it names, are not included.

            The backup contains private keys and the clients' registrations: store it encrypted \
            and restrict access.

            Examples:
              timelinectl backup --data /var/lib/timeline-gateway --to /backup/gateway-$(date +%F)
              timelinectl backup --data ./data --to ./copy --json
            """)

    @Option(help: ArgumentHelp("The gateway's data directory.", valueName: "directory"))
    var data: String

    @Option(help: ArgumentHelp("Path of the backup; must not exist.", valueName: "path"))
    var to: String

    @Flag(help: "Print JSON, one document per line.")
    var json = false

    func run() async throws {
        let progress = Progress("copied", text: Progress.bytes)
        let manifest = try await DirectoryWork.run(json: json) {
            try DataDirectory(data).backup(to: to) { progress.reach($0, of: $1) }
        }
        Terminal.print(manifest.json, as: json ? .json : .text) {
            "backup \(to): \(Progress.bytes(manifest.bytes)), "
                + "\(manifest.size), "
                + "the log up to \(manifest.head)\n"
                + "It contains private keys: whoever can read it can act as the gateway."
        }
    }
}

struct RestoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Restore a backup into an empty data directory, and open a new epoch.",
        discussion: """
            Checks every file and the whole database first; if the backup is damaged, it names the \
            file and restores nothing. The directory must be empty or missing, and no gateway may \
            be running on it.

            Changes accepted after the backup are lost. The new epoch invalidates all existing \
            cursors, so that no client relies on them: when the gateway starts, every client \
            rebuilds everything once.

            Examples:
              timelinectl restore --from /backup/gateway-2026-03-01 --data /var/lib/timeline-gateway
            """)

    @Option(help: ArgumentHelp("The backup.", valueName: "path"))
    var from: String

    @Option(help: ArgumentHelp("The data directory to restore into.", valueName: "directory"))
    var data: String

    @Flag(help: "Print JSON, one document per line.")
    var json = false

    func run() async throws {
        let progress = Progress("restored", text: Progress.bytes)
        let restored = try await DirectoryWork.run(json: json) {
            try await DataDirectory(data).restore(from: from) { progress.reach($0, of: $1) }
        }
        let manifest = restored.manifest
        let answer: JSONValue = [
            "epoch": .integer(restored.epoch), "created": .string(manifest.created),
            "head": .integer(Int64(clamping: manifest.head)),
            "clients": .integer(Int64(manifest.clients)), "apps": .integer(Int64(manifest.apps)),
        ]
        Terminal.print(answer, as: json ? .json : .text) {
            """
            restored \(manifest.size) into \(data), \
            the log up to \(manifest.head), as of \(manifest.created)
            epoch \(restored.epoch): all older cursors are void
            When the gateway starts on it:
              - clients that stream or poll rebuild everything once
              - push clients are notified that everything is stale
              - clients registered after the backup are unknown; they register when they reconnect
              - changes accepted after the backup are lost; if posted again, they are accepted
            """
        }
    }
}

extension BackupManifest {
    /// `3 clients of 1 app`.
    fileprivate var size: String {
        "\(clients) client\(clients == 1 ? "" : "s") of \(apps) app\(apps == 1 ? "" : "s")"
    }
}

/// Work on a data directory next to the gateway.
enum DirectoryWork {
    /// Runs `body`; an error is printed and ends the program with the status for refusals.
    static func run<Result>(json: Bool, _ body: () async throws -> Result) async throws -> Result {
        do {
            return try await body()
        } catch {
            if json {
                let faults = (error as? Faults)?.list ?? [Fault("", "\(error)")]
                Terminal.print(JSONValue.object(["faults": .array(faults.map(\.json))]).text)
            } else {
                Terminal.complain("timelinectl: \(error)")
            }
            throw ExitStatus.refused
        }
    }
}
