import ArgumentParser
import Foundation
import GatewayOperations
import GatewaySigning
import WidgetModel

struct Token: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Issue a token from the gateway's own issuer.",
        discussion: """
            The keys are those of a data directory; all nodes of a cluster have the same. Prints only \
            the token; with --subs-from one token per line, in the file's order. The gateway accepts \
            it in development mode, or with `localIssuer: true`.

            Scopes: catalog:write, changes:write, client, clients:write, operator, operator:read, \
            tokens:issue.

            EXAMPLES
              timeline-gateway token --data ./data --app com.mygame --scope "catalog:write changes:write"
              timeline-gateway token --data ./data --app com.mygame --scope client --sub phone-1 \\
                --attribute account=42 --ttl 30d
              timeline-gateway token --data ./data --app com.mygame --scope client --subs-from ids.txt
            """)

    @Option(help: "The gateway's data directory.")
    var data: String

    @Option(help: "The app's bundle id; * for all apps, with operator or operator:read.")
    var app: String

    @Option(help: "Scopes, separated by spaces.")
    var scope: String

    @Option(help: "Subject: the client id for the scope client.")
    var sub: String?

    @Option(help: "A file with one client id per line; prints one token per line.")
    var subsFrom: String?

    @Option(help: "An attribute of the client, NAME=VALUE. Repeatable.")
    var attribute: [String] = []

    @Option(help: "Lifetime: 90s, 15m, 1h, 30d.")
    var ttl = "1h"

    @Flag(help: "Print JSON.")
    var json = false

    func run() throws {
        let scopes = try readScopes()
        guard let seconds = DurationText.seconds(ttl), seconds > 0 else {
            throw ValidationError("--ttl must be a duration such as 90s, 15m, 1h or 30d.")
        }
        if scopes.contains(.client), seconds > LocalIssuer.clientTokenSecondsMax {
            throw ValidationError("--ttl: a client token is valid for at most 30 days.")
        }
        let attributes = try readAttributeOptions()
        let subjects = try readSubjects(scopes)
        let now = Int64(Date().timeIntervalSince1970)
        var lines: [String] = []
        do {
            let issuer = try DataDirectory(data).tokenIssuer(now: now)
            for subject in subjects {
                let token = try issuer.issue(
                    sub: subject, app: app, scopes: scopes, ttl: seconds, attributes: attributes,
                    now: now)
                let object: JSONValue = [
                    "token": .string(token), "sub": .string(subject),
                    "exp": .integer(now + seconds),
                ]
                lines.append(json ? object.text : token)
            }
        } catch {
            complain("timeline-gateway token: \(error)")
            throw ExitCode.failure
        }
        answer(lines.joined(separator: "\n"))
    }

    private func readScopes() throws -> Set<Scope> {
        var scopes: Set<Scope> = []
        for name in scope.split(whereSeparator: { $0 == " " || $0 == "," }).map(String.init) {
            guard let scope = Scope(rawValue: name) else {
                let hint = name.nearest(of: Scope.allCases.map(\.rawValue)).map {
                    " Did you mean \($0)?"
                }
                throw ValidationError("--scope: `\(name)` is not a scope.\(hint ?? "")")
            }
            scopes.insert(scope)
        }
        guard !scopes.isEmpty else { throw ValidationError("--scope is empty.") }
        if app == "*", !Scope.grants(.operatorRead, from: scopes) {
            throw ValidationError("--app * needs the scope operator or operator:read.")
        }
        return scopes
    }

    private func readAttributeOptions() throws -> [String: [String]] {
        var attributes: [String: [String]] = [:]
        for text in attribute {
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].isEmpty else {
                throw ValidationError("--attribute must be NAME=VALUE.")
            }
            attributes[String(parts[0]), default: []].append(String(parts[1]))
        }
        return attributes
    }

    private func readSubjects(_ scopes: Set<Scope>) throws -> [String] {
        if let subsFrom {
            guard let file = FileManager.default.contents(atPath: subsFrom) else {
                throw ValidationError("--subs-from: \(subsFrom) cannot be read.")
            }
            return String(decoding: file, as: UTF8.self)
                .split(whereSeparator: \.isNewline).map(String.init)
        }
        if let sub { return [sub] }
        if scopes.contains(.client) {
            throw ValidationError("--sub is required with the scope client: the client's id.")
        }
        return ["backend"]
    }
}
