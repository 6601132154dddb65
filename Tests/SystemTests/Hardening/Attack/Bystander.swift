import Foundation
import GatewaySigning
import GatewayTestSupport
import WidgetModel

/// A well-behaved client of another app, with a stream open while others attack.
final class Bystander: Sendable {
    private static let app = "com.bystander"
    private static let client = "bystander"

    private let http: TestHTTP
    private let stream: TestHTTPStream
    private let backend: String
    private let turn = TestHTTPMonitor(0)

    init(_ process: GatewayProcess, _ issuer: Issuer) throws {
        http = process.http(timeoutSeconds: Int(Patience.seconds))
        backend = try issuer.token(app: Self.app, scope: Issuer.backendScopes)
        let token = try issuer.token(app: Self.app, scope: "client", sub: Self.client)
        try http.putCatalog(Catalogs.bystander, app: Self.app, token: backend)
        let registration: JSONValue = [
            "platform": "iOS", "widgets": [["kind": "clock", "family": "systemSmall"]],
        ]
        let registered = try http.register(
            Self.client, app: Self.app, token: token, registration)
        guard registered.status == 201 else { throw TestFailure(registered.text) }
        stream = process.stream(
            app: Self.app, client: Self.client, token: token,
            from: registered["cursor"]?.stringValue)
        guard stream.head()?.status == 200 else {
            throw TestFailure("the bystander has no stream")
        }
    }

    /// Posts a change for the bystander and waits until its stream reports it; returns the error,
    /// if any.
    func trouble() async throws -> String? {
        try await elsewhere { [self] in try turn.update { try check(&$0) } }
    }

    /// Runs under the lock: one check at a time.
    private func check(_ number: inout Int) throws -> String? {
        number += 1
        let event: JSONValue = [
            "specversion": "1.0", "type": "tick", "source": "bystander",
            "id": .string("tick-\(number)"), "data": ["entity": "Tick"],
        ]
        let answer = try http.request(
            "POST", "/v1/apps/\(Self.app)/changes", token: backend,
            headers: [("Content-Type", "application/cloudevents+json")], body: event.text)
        guard answer.status == 202, let sequence = answer["sequence"]?.integerValue else {
            return "its change was answered \(answer.status)"
        }
        while true {
            switch stream.next() {
            case .block(let block):
                guard let notification = block.data else { continue }
                let parts = notification.split(separator: ".")
                guard parts.count == 3, let payload = Base64.url.decode(Array(parts[1].utf8)),
                    let claims = try? JSONValue(parsing: payload).objectValue,
                    let seq = claims["seq"]?.integerValue
                else { return "its notification is no JWS" }
                if seq >= sequence { return nil }
            case .ended(let reason):
                return "its stream ended: \(reason ?? "in order")"
            case nil:
                return "its stream told nothing"
            }
        }
    }
}
