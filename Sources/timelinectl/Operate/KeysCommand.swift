import ArgumentParser
import Foundation
import GatewayDocuments
import GatewaySigning
import TimelineRuntime
import WidgetModel

struct KeysCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keys",
        abstract: "Show a gateway's published keys and check them.",
        discussion: """
            Clients verify notifications with these keys. Prints each key's id and algorithm, and \
            how long clients cache them. With --admin it also prints each key's state: signing, \
            published for later, or retiring. No token is needed. `timeline-gateway keys rotate` \
            creates a new key; `timelinectl token check` verifies a notification.

            Exit status 4 if no key is usable or the set contains private key material.

            Examples:
              timelinectl keys --url https://localhost:8443 --ca ca.pem
              timelinectl keys --url https://localhost:8443 --ca ca.pem --admin 127.0.0.1:9464 --json
            """)

    @OptionGroup var options: CommonOptions

    @Option(help: ArgumentHelp("Admin port, to print each key's state.", valueName: "host:port"))
    var admin: String?

    func run() async throws {
        try await options.withService(of: "*") { service throws(GatewayFailure) in
            let response = try await service.answer(
                to: GatewayRequest(target: "/.well-known/jwks.json"))
            let states = try await states()
            guard let report = PublishedKeys(response.body, states: states) else {
                throw .unreadable("it is not a JWK Set")
            }
            let kept = response.head["cache-control"]
            Terminal.print(report.json, as: options.form) { report.text(kept: kept) }
            if let fault = report.fault {
                Terminal.complain("timelinectl: \(fault)")
                Foundation.exit(ExitStatus.unverified.rawValue)
            }
        }
    }

    /// The states of the keys, by id; empty without an admin port.
    private func states() async throws(GatewayFailure) -> [String: String] {
        guard let admin else { return [:] }
        var options = AdminOptions()
        (options.admin, options.ca, options.token) = (admin, self.options.ca, self.options.token)
        let connection: AdminConnection
        do {
            connection = try options.connection()
        } catch {
            throw .connection(ConnectionError(.badRequest, "--admin must be HOST:PORT"))
        }
        let system = try SystemStatus(answer: .object(try await connection.page("/api/system")))
        return Dictionary(system.keys.map { ($0.kid, $0.state) }) { _, last in last }
    }
}

/// A published JWK Set.
struct PublishedKeys {
    struct Key: Equatable {
        let kid: String
        let algorithm: String
        /// Whether this program can verify with the key.
        let isUsable: Bool
        /// The state of the key; `nil` if it was not requested.
        let state: String?
    }

    let keys: [Key]
    /// The reason why the set must not be used; `nil` if it is sound.
    let fault: String?

    /// Returns `nil` if the document is not a JWK Set.
    init?(_ document: [UInt8], states: [String: String]) {
        guard let members = try? JSONValue(parsing: document).objectValue,
            let list = members["keys"]?.arrayValue
        else { return nil }
        let set = try? JWKSet(parsing: document)
        keys = list.compactMap(\.objectValue).map { key in
            let kid = key["kid"]?.stringValue ?? ""
            return Key(
                kid: kid, algorithm: key["alg"]?.stringValue ?? "-",
                isUsable: set?[kid] != nil, state: states[kid])
        }
        if list.contains(where: { $0.objectValue?["d"] != nil || $0.objectValue?["k"] != nil }) {
            fault = "the set contains a private key: rotate the keys and check the server"
        } else if !keys.contains(where: \.isUsable) {
            fault = "no key in the set is usable"
        } else if Set(keys.map(\.kid)).count != keys.count {
            fault = "two keys in the set have the same id"
        } else {
            fault = nil
        }
    }

    var json: JSONValue {
        .object([
            "keys": .array(
                keys.map { key in
                    var object: JSONObject = [
                        "kid": .string(key.kid), "alg": .string(key.algorithm),
                        "usable": .bool(key.isUsable),
                    ]
                    if let state = key.state { object["state"] = .string(state) }
                    return .object(object)
                })
        ])
    }

    /// - Parameter kept: The permitted caching of the set, as stated in the response.
    func text(kept: String?) -> String {
        let rows = keys.map {
            [$0.kid, $0.algorithm, $0.isUsable ? "yes" : "NO", $0.state ?? ""]
        }
        let table = TextBlock.table(["KID", "ALGORITHM", "USABLE", "STATE"], rows)
        return kept.map { table + "\ncached by clients: " + TextBlock.line($0) } ?? table
    }
}
