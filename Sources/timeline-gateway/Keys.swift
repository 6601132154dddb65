import ArgumentParser
import Foundation
import GatewayOperations
import WidgetModel

extension KeyPurpose: ExpressibleByArgument {}

struct Keys: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show or rotate the keys that sign notifications or webhooks.",
        discussion: """
            A new notification key is published first and starts to sign after one cache lifetime; \
            the old key is retired when nothing it signed is valid any more. A new webhook key \
            signs immediately, in addition to the old one, for two weeks; then it signs alone. \
            Within that time receivers learn the new key from the response to any registration. A \
            running gateway picks up changes within half a minute.

            EXAMPLES
              timeline-gateway keys list --data ./data
              timeline-gateway keys rotate --data ./data
              timeline-gateway keys rotate --data ./data --algorithm ES256
              timeline-gateway keys rotate --data ./data --purpose webhooks
            """, subcommands: [List.self, Rotate.self])

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the keys and their states.",
            discussion: "EXAMPLES\n  timeline-gateway keys list --data ./data --json")

        @Option(help: "The gateway's data directory.")
        var data: String

        @Option(help: "Key purpose: notifications or webhooks.")
        var purpose = KeyPurpose.notifications

        @Flag(help: "Print JSON.")
        var json = false

        func run() throws {
            try show(try failing { try DataDirectory(data).signingKeys(purpose) }, json: json)
        }
    }

    struct Rotate: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Publish a new key that replaces the signing key.",
            discussion: """
                EXAMPLES
                  timeline-gateway keys rotate --data ./data
                  timeline-gateway keys rotate --data ./data --purpose webhooks
                """)

        @Option(help: "The gateway's data directory.")
        var data: String

        @Option(help: "Key purpose: notifications or webhooks.")
        var purpose = KeyPurpose.notifications

        @Option(help: "EdDSA or ES256. Webhooks support EdDSA only.")
        var algorithm = "EdDSA"

        @Flag(help: "Print JSON.")
        var json = false

        func run() throws {
            guard SigningKeyState.algorithms.contains(algorithm) else {
                throw ValidationError("--algorithm must be EdDSA or ES256.")
            }
            guard purpose == .notifications || algorithm == "EdDSA" else {
                throw ValidationError("--algorithm must be EdDSA for webhooks.")
            }
            try show(
                try failing { try DataDirectory(data).rotateSigningKey(purpose, to: algorithm) },
                json: json)
            if DataDirectory(data).isOfNode {
                complain(
                    "this is the directory of a node: the new key lasts only if the node leads; see"
                        + " `timeline-gateway cluster status`")
            }
        }
    }
}

private func show(_ keys: [SigningKeyState], json: Bool) throws {
    for key in keys {
        let parts = [key.kid, key.algorithm, key.publicKey, key.state]
        answer(json ? key.json.text : parts.compactMap { $0 }.joined(separator: "  "))
    }
}

/// Runs `body`; prints an error to standard error and ends the program with exit code 1.
func failing<T>(_ body: () throws -> T) throws -> T {
    do {
        return try body()
    } catch {
        complain("timeline-gateway: \(error)")
        throw ExitCode.failure
    }
}

/// Does the same as the synchronous ``failing(_:)``.
func failing<T>(_ body: () async throws -> T) async throws -> T {
    do {
        return try await body()
    } catch {
        complain("timeline-gateway: \(error)")
        throw ExitCode.failure
    }
}

struct Epoch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Manage the log's epochs.",
        discussion: "EXAMPLES\n  timeline-gateway epoch new --data ./data",
        subcommands: [New.self])

    struct New: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Invalidate all existing cursors. Required after any restore.",
            discussion: """
                A restored log lacks the changes accepted after the backup. With a new epoch every \
                client rebuilds everything once, so that no screen stays stale. The gateway must \
                not be running.

                EXAMPLES
                  timeline-gateway epoch new --data ./data
                """)

        @Option(help: "The gateway's data directory.")
        var data: String

        @Flag(help: "Print JSON.")
        var json = false

        func run() async throws {
            let ordinal = try await failing { try await DataDirectory(data).openNewEpoch() }
            answer(
                json ? #"{"epoch":\#(ordinal)}"# : "epoch \(ordinal): all older cursors are void")
        }
    }
}
