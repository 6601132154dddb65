import ArgumentParser
import GatewayDocuments
import TimelineRuntime
import WidgetModel

/// A client that the gateway trusts: the claims of its token.
struct SimulatedClient: Sendable {
    let token: String
    /// Its `sub`, the client's id.
    let id: String
    /// The attributes that its issuer vouches for.
    let attributes: [String: [String]]

    /// Reads the claims of a token; `nil` if it is not a client's.
    init?(token: String) {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3, let payload = Base64.url.decode(String(parts[1])),
            let claims = (try? JSONValue(parsing: payload))?.objectValue,
            let id = claims["sub"]?.stringValue, Identifier.isValid(id)
        else { return nil }
        var faults = Faults()
        self.token = token
        self.id = id
        attributes =
            claims["attributes"].map {
                readAttributes($0, at: "attributes", limits: .none, &faults)
            } ?? [:]
    }

    /// Reads clients from a file with one token per line, as `timeline-gateway token --subs-from`
    /// prints them. Throws `ValidationError` for fewer than `count` lines, a line that is not a
    /// client's token, or two tokens of one client.
    static func read(_ path: String, count: Int) throws -> [SimulatedClient] {
        let lines = String(decoding: try Terminal.read(path), as: UTF8.self)
            .split(whereSeparator: \.isNewline)
        guard lines.count >= count else {
            throw ValidationError("\(path) has \(lines.count) tokens for \(count) devices")
        }
        let clients = try lines.prefix(count).enumerated().map { place, line in
            guard let client = SimulatedClient(token: String(line)) else {
                throw ValidationError("line \(place + 1) of \(path) is not a client token")
            }
            return client
        }
        guard Set(clients.map(\.id)).count == count else {
            throw ValidationError("\(path) has two tokens for one client")
        }
        return clients
    }

    /// Asks the gateway to issue a client's token, which needs a token with the scope tokens:issue.
    /// The gateway vouches for `attributes`.
    static func made(
        _ id: String, attributes: [String: String], ttl: Duration, by service: GatewayService
    ) async throws(GatewayFailure) -> SimulatedClient {
        let answer = try await service.json(
            "POST", "\(service.base)/tokens",
            body: [
                "sub": .string(id), "ttl": .integer(ttl.components.seconds),
                "attributes": attributesJSON(attributes.mapValues { [$0] }),
            ])
        let issued = try IssuedToken(answer: answer.value)
        guard let client = SimulatedClient(token: issued.token) else {
            throw .unreadable("the response has no client token")
        }
        return client
    }
}
