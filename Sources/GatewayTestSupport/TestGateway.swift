import Foundation
import GatewaySigning
import WidgetModel

/// A gateway that a test has started: a process of its own, or one in the process of the tests.
package protocol TestGateway: AnyObject, Sendable {
    /// `https://HOST:PORT` of the TLS port.
    var url: String { get }
    /// The file of the CA that its certificate chains to.
    var ca: String { get }
    var data: String { get }
    /// Host and port of the admin port.
    var admin: String { get }
    /// The last lines of its log, for a failure's text.
    var standardErrorTail: String { get }
    /// Seconds since 1970, by its clock.
    var wallSeconds: Int64 { get }

    /// Asks it to stop, and waits until it has. Returns its exit status; `nil` if it does not stop.
    @discardableResult
    func terminate() -> GatewayProcessExit?
}

extension TestGateway {
    package var wallSeconds: Int64 { Int64(Date().timeIntervalSince1970) }
    /// The number of the TLS port.
    package var port: UInt16 { url.split(separator: ":").last.flatMap { UInt16($0) } ?? 0 }

    // MARK: Clients

    /// A client of the gateway as it runs now; after a restart another one is needed.
    package func http(
        _ version: TestHTTPVersion = .one, timeoutSeconds: Int = Int(Patience.seconds)
    ) -> TestHTTP {
        TestHTTP(url: url, ca: ca, version: version, timeoutSeconds: timeoutSeconds)
    }

    /// Opens the stream of a client.
    package func stream(
        app: String, client: String, token: String, from cursor: String? = nil,
        version: TestHTTPVersion = .one, receiveBufferBytes: Int? = nil, cutAtByte: Int? = nil
    ) -> TestHTTPStream {
        TestHTTPStream(
            url: url, ca: ca, path: "/v1/apps/\(app)/clients/\(client)/reloads", token: token,
            lastEventID: cursor, version: version, receiveBufferBytes: receiveBufferBytes,
            cutAtByte: cutAtByte)
    }

    /// A client of the admin port on loopback, whose address must be known.
    package func adminHTTP(timeoutSeconds: Int = Int(Patience.seconds)) -> TestHTTP {
        TestHTTP(url: "http://\(admin)", ca: ca, timeoutSeconds: timeoutSeconds)
    }

    package func metrics() throws -> MetricsPage {
        MetricsPage(try adminHTTP().request("GET", "/metrics").text)
    }

    /// Returns the status of a probe such as `/readyz`; 0 when there was no answer.
    package func status(of path: String) -> Int {
        (try? adminHTTP(timeoutSeconds: 5).request("GET", path).status) ?? 0
    }

    /// Runs a command of `timelinectl` on this gateway; returns what ``GatewayProcess/run`` does.
    package func timelinectl(
        _ arguments: [String], token: String, app: String? = nil
    ) throws -> (exit: GatewayProcessExit, output: String) {
        let named = app.map { ["--app", $0] } ?? []
        return try GatewayProcess.timelinectl(
            arguments + ["--url", url, "--ca", ca, "--token", token] + named)
    }

    // MARK: Tokens

    /// Issues a token with the key of the gateway's own issuer, as the `token` subcommand does.
    package func token(
        app: String, scope: String, sub: String = "backend", attributes: [String] = [],
        ttl: String = "1h"
    ) throws -> String {
        var vouched: [String: [String]] = [:]
        for attribute in attributes {
            let parts = attribute.split(separator: "=", maxSplits: 1).map(String.init)
            vouched[parts[0], default: []].append(parts[1])
        }
        return try issue(
            [sub], app: app, scopes: Scope.known(in: scope), attributes: vouched, ttl: ttl
        )[0]
    }

    /// Issues a `client` token for each of `clients`, in their order.
    package func clientTokens(
        app: String, clients: [String], ttl: String = "1h"
    ) throws -> [String] {
        try issue(clients, app: app, scopes: [.client], attributes: [:], ttl: ttl)
    }

    private func issue(
        _ subjects: [String], app: String, scopes: Set<Scope>, attributes: [String: [String]],
        ttl: String
    ) throws -> [String] {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
        guard let count = Int64(ttl.dropLast()), let unit = ttl.last.flatMap({ units[$0] })
        else { throw TestFailure("not a duration: \(ttl)") }
        let now = wallSeconds
        let identity = try Data(contentsOf: URL(fileURLWithPath: data + "/gateway.json"))
        guard
            let audience = try JSONValue(parsing: Array(identity)).objectValue?["urls"]?
                .arrayValue?.first?.stringValue
        else { throw TestFailure("no gateway was served from \(data)") }
        let ring = try KeyRingStore(directory: data + "/issuer").open(
            timing: KeyRing.Timing(signatureLifetime: 0), now: now)
        let issuer = TokenIssuer(key: ring.signingKey, iss: "timeline-gateway", aud: audience)
        return try subjects.map {
            try issuer.issue(
                sub: $0, app: app, scopes: scopes, ttl: count * unit, attributes: attributes,
                now: now)
        }
    }
}
