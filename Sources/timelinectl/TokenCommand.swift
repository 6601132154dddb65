import ArgumentParser
import Foundation
import GatewaySigning
import TimelineClient
import TimelineClientHTTP
import WidgetModel

/// Commands that inspect tokens.
struct TokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token",
        abstract: "Inspect a token.",
        subcommands: [Check.self])

    /// Prints the claims of a token and whether it is valid.
    struct Check: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "check",
            abstract: "Print the claims of a token or notification, and whether it is valid.",
            discussion: """
                Without keys it prints the claims and checks the times, but not the signature. \
                With --jwks (a file) or --url (the gateway's published keys) it verifies the \
                signature. The signature itself is never printed.

                Examples:
                  timelinectl token check "$TIMELINE_GATEWAY_TOKEN"
                  timelinectl token check --jwks issuer-keys.json - < token.txt
                  timelinectl token check --url https://localhost:8443 --ca ca.pem "$NOTIFICATION"
                """)

        @OptionGroup var options: CommonOptions

        @Option(help: ArgumentHelp("Keys to verify with, a JWK Set.", valueName: "file"))
        var jwks: String?

        @Argument(help: "The token, or - for standard input.")
        var text: String

        func run() async throws {
            let bytes = text == "-" ? try Terminal.read("-") : Array(text.utf8)
            let trimmed = String(decoding: bytes, as: UTF8.self)
                .trimmingCharacters(in: .whitespacesAndNewlines)
            let report = TokenReport(
                trimmed, keys: try await keys(), now: Int64(Date().timeIntervalSince1970))
            Terminal.print(report.json, as: options.form) { report.text }
            if !report.faults.isEmpty { throw ExitStatus.unverified }
        }

        private func keys() async throws -> JWKSet? {
            if let jwks {
                let document = try Terminal.read(jwks)
                do throws(SigningError) {
                    return try JWKSet(parsing: document)
                } catch {
                    throw ValidationError("\(jwks): \(error.message)")
                }
            }
            // Only when requested: the variable states only where the gateway is, not that its keys
            // are those of this token's issuer.
            guard options.url != nil else { return nil }
            guard
                let keys = await PublishedKeyVerifier.publishedKeys(
                    by: try options.connection())?.set
            else {
                Terminal.complain("timelinectl: cannot fetch the gateway's keys")
                throw ExitStatus.unreachable
            }
            return keys
        }
    }
}
