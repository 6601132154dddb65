import ArgumentParser
import Foundation
import GatewayDocuments
import GatewaySigning
import TimelineRuntime
import WidgetModel

struct TokenCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token",
        abstract: "Inspect a token, or issue one for a client.",
        subcommands: [Check.self, Mint.self])

    struct Mint: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "mint",
            abstract: "Issue a token for one client.",
            discussion: """
                Prints only the token, which has the scope client. The gateway's own issuer signs it: \
                enable `localIssuer`, or use `timeline-gateway token` on its machine. Needs a token \
                with the scope tokens:issue.

                Examples:
                  timelinectl token mint --client my-iphone
                  timelinectl token mint --client my-iphone --attribute account=42 --ttl 30d
                """)

        @OptionGroup var options: CommonOptions
        @OptionGroup var app: AppOption
        @OptionGroup var client: ClientOption

        @Option(
            name: .customLong("attribute"),
            help: ArgumentHelp(
                "An attribute that the token vouches for. Repeat a name for several values.",
                valueName: "name=value"))
        var attributes: [AttributeValue] = []

        @Option(help: "Lifetime: 90s, 15m, 1h, at most 30d.")
        var ttl = "1h"

        func run() async throws {
            try await options.send(
                "POST", "/tokens", of: app.required(), body: body.serialized
            ) { (issued: IssuedToken) in issued.token }
        }

        var body: JSONValue {
            let values = Dictionary(grouping: attributes, by: \.name).mapValues { $0.map(\.value) }
            return [
                "sub": .string(client.client), "ttl": .string(ttl),
                "attributes": attributesJSON(values),
            ]
        }
    }

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
