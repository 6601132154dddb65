import APNsSimulator
import Foundation
import GatewaySigning
import GatewayTLS
import GatewayTestSupport
import WidgetModel

/// Gateways of one cluster, as processes, with what a backend and clients need to use them.
package final class ClusterGateways: Sendable {
    package static let app = "com.mygame"
    private static let url = "https://gateway.test"

    package let cluster: ClusterFixture
    private let app: String
    private let folder: String
    private let certificates: DevelopmentCertificates
    private let issuer: TokenIssuer
    /// The time at which tokens are issued, in seconds since 1970.
    private let issued: Int64
    private let pushOptions: [String]
    /// `nil` where nothing is pushed.
    package let apns: APNsServer?

    /// Prepares a cluster without running gateways.
    ///
    /// - Parameters:
    ///   - app: The app that tokens are for.
    ///   - pushes: Whether the gateways push, through a push service of their own.
    ///   - pushOptions: Options of pushes in addition to the usual ones, such as `interval: 1s`.
    ///   - tokenAge: The age of the tokens that are issued, in seconds.
    package init(
        _ cluster: ClusterFixture, app: String = ClusterGateways.app, pushes: Bool = false,
        pushOptions: [String] = [], tokenAge: Int64 = 0
    ) throws {
        (self.cluster, self.app, self.pushOptions) = (cluster, app, pushOptions)
        let now = Int64(Date().timeIntervalSince1970)
        issued = now - tokenAge
        folder = try GatewayProcess.temporaryDirectory()
        certificates = try DevelopmentCertificates.ensure(in: folder, now: now)
        let key = try SigningKey(generating: .edDSA)
        issuer = TokenIssuer(key: key, iss: "https://issuer.test", aud: Self.url)
        try Data(JWKSet([key.publicKey]).serialized).write(to: URL(filePath: folder + "/keys.json"))
        let keys = folder + "/cluster.key"
        try Data(ClusterFixture.key).write(to: URL(filePath: keys))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: keys)
        apns = pushes ? try Self.pushService(in: folder, certificates) : nil
    }

    private static func pushService(
        in folder: String, _ certificates: DevelopmentCertificates
    ) throws -> APNsServer {
        var terms = SimulatedAPNs.Terms()
        terms.environment = .production
        let key = try SigningKey(generating: .es256)
        try key.save(to: folder + "/apns.p8")
        terms.keys = [try ProviderKey(id: "KEY1234567", team: "TEAM123456", key: key.publicKey)]
        return try APNsServer(
            terms,
            APNsServer.Settings(
                certificate: .file(certificates.certificate), key: .file(certificates.key)))
    }

    /// The lines of a node's configuration about pushes.
    private var pushing: String {
        guard let apns else { return "" }
        let options = ["apnsProduction: \"127.0.0.1:\(apns.port)\"", "apnsCA: \(certificates.ca)"]
        return """
            apns:
              - { app: \(Self.app), team: TEAM123456, keyID: KEY1234567, key: \(folder)/apns.p8,
                  environment: production }
            push: { \((options + pushOptions).joined(separator: ", ")) }
            webhooks: { allowedRanges: [127.0.0.0/8], ca: \(certificates.ca) }
            """
    }

    /// Starts a source of content for Live Activities.
    package func content() throws -> ContentServer {
        try ContentServer(
            in: folder, certificate: certificates.certificate, key: certificates.key)
    }

    deinit { try? FileManager.default.removeItem(atPath: folder) }

    package var ca: String { certificates.ca }

    /// Starts a node, and waits until it is ready.
    package func start(_ node: Int32) throws -> GatewayProcess { try makeNode(node) }

    /// Returns a node, which is started and ready unless `startsNow` is `false`.
    ///
    /// - Parameters:
    ///   - program: The gateway's program; `nil` for the one that tests use.
    ///   - data: Its data directory; `nil` for a new one.
    ///   - hosts: The hosts of its database URL; `nil` for the servers' own.
    ///   - address: The address for other nodes, its name in the database; `nil` for a free one.
    ///   - admin: The address of its admin port.
    ///   - environment: Variables of its process.
    ///   - wrapper: A program and its arguments that then becomes the node.
    package func makeNode(
        _ node: Int32, program: String? = nil, data: String? = nil, hosts: [String]? = nil,
        address: String? = nil, admin: String = "127.0.0.1:0",
        environment: [String: String] = [:], wrapper: [String] = [], startsNow: Bool = true
    ) throws -> GatewayProcess {
        let user = "node\(node)"
        let url = hosts.map { cluster.url(user: user, hosts: $0) } ?? cluster.url(user: user)
        let file = try configuration(
            user,
            """
            cluster:
              url: \(url)
              key: \(folder)/cluster.key
              durability: \(cluster.standby == nil ? "primary" : "quorum")
              node: \(try address ?? GatewayProcess.freeAddress())
            """)
        return try GatewayProcess(
            program: program, data: data, configuration: file, admin: admin, ca: ca,
            environment: environment, wrapper: wrapper, startsNow: startsNow)
    }

    /// Returns a gateway outside the cluster with the nodes' other configuration.
    ///
    /// - Parameter data: Its data directory; `nil` for a new one.
    package func startAlone(
        admin: String = "127.0.0.1:0", data: String? = nil, startsNow: Bool = true
    ) throws -> GatewayProcess {
        try GatewayProcess(
            data: data, configuration: configuration("alone", ""), admin: admin, ca: ca,
            startsNow: startsNow)
    }

    /// The file with the cluster's key.
    package var key: String { folder + "/cluster.key" }

    /// Writes a configuration, and returns its file.
    private func configuration(_ name: String, _ lines: String) throws -> String {
        let file = folder + "/\(name).yaml"
        try """
        publicURL: \(Self.url)
        tls: { certificate: \(certificates.certificate), key: \(certificates.key) }
        issuers:
          - iss: https://issuer.test
            apps: [\(app)]
            scopes: [catalog:write, changes:write, client, clients:write, operator]
            keys: \(folder)/keys.json
        \(lines)
        \(pushing)
        """.write(toFile: file, atomically: true, encoding: .utf8)
        return file
    }

    /// Returns a token with the scopes of a backend.
    ///
    /// - Parameter lifetime: The seconds until it expires.
    package func backend(lifetime: Int = 3_600) throws -> String {
        try issuer.issue(
            sub: "backend", app: app,
            scopes: [.catalogWrite, .changesWrite, .clientsWrite, .operate], ttl: Int64(lifetime),
            now: issued)
    }

    /// Returns a token of a client.
    ///
    /// - Parameter lifetime: The seconds until it expires.
    package func token(
        _ client: String, attributes: [String: [String]] = [:], lifetime: Int = 3_600
    ) throws -> String {
        try issuer.issue(
            sub: client, app: app, scopes: [.client], ttl: Int64(lifetime),
            attributes: attributes, now: issued)
    }

    package func http(_ node: GatewayProcess) -> TestHTTP { node.http() }

    /// Makes a request, and makes it again while it is refused because the database does not answer
    /// or nobody leads, which may happen on a busy machine at any time.
    package func repeating(
        unless isOnce: Bool = false, _ request: () throws -> TestHTTPAnswer
    ) throws -> TestHTTPAnswer {
        var answer = try request()
        if !isOnce, answer.status == 503 {
            try blockUntil("the cluster answers", details: { answer.text }) {
                answer = try request()
                return answer.status != 503
            }
        }
        return answer
    }

    /// Puts a catalog of one kind of widget, which shows a character.
    package func putCatalog(_ node: GatewayProcess) throws {
        let answer = try repeating {
            try http(node).request(
                "PUT", "/v1/apps/\(Self.app)/catalog", token: backend(),
                headers: [("Content-Type", "application/yaml")],
                body: """
                    app: \(Self.app)
                    entities: { Character: { properties: [health] } }
                    intents: { One: { parameters: [{ name: character, type: Character }] } }
                    widgets:
                      - kind: detail
                        configuration: appIntent
                        intent: One
                        families: [systemSmall]
                        collapse: 0s
                        dependsOn: [{ entity: Character, match: { id: $character } }]
                    """)
        }
        // Who was refused for want of an answer may have put it all the same.
        guard [200, 201].contains(answer.status) else { throw TestFailure(answer.text) }
    }

    /// Registers a client with a widget for each of `characters`; returns the answer.
    ///
    /// - Parameters:
    ///   - pushToken: The push token of the device; `nil` for none.
    ///   - once: Whether to return a refusal (503) instead of trying again.
    package func register(
        _ client: String, _ characters: [String], pushToken: String? = nil, once: Bool = false,
        at node: GatewayProcess
    ) throws -> TestHTTPAnswer {
        let document = registration(
            showing: characters, delivery: addresses(pushToken: pushToken))
        return try repeating(unless: once) {
            try http(node).register(client, app: Self.app, token: token(client), document)
        }
    }

    /// Posts a change of a character.
    ///
    /// - Parameter once: Whether to return a refusal (503) instead of trying again.
    package func change(
        _ character: String, id: String, once: Bool = false, at node: GatewayProcess
    ) throws -> TestHTTPAnswer {
        try repeating(unless: once) {
            try http(node).post(
                [event(source: "test", id: id, entity: "Character", key: character)],
                app: Self.app, token: backend())
        }
    }

    /// Acknowledges everything up to a cursor.
    package func acknowledge(
        _ client: String, upTo cursor: String, at node: GatewayProcess
    ) throws -> TestHTTPAnswer {
        try repeating {
            try http(node).request(
                "POST", "/v1/apps/\(Self.app)/clients/\(client)/acks", token: token(client),
                body: JSONValue.object(["cursor": .string(cursor)]).text)
        }
    }

    /// Opens the stream of a client.
    ///
    /// - Parameter once: Whether to return a refusal (503) instead of trying again.
    package func stream(
        _ client: String, from cursor: String?, once: Bool = false, at node: GatewayProcess
    ) throws -> ToldStream {
        func open() throws -> ToldStream {
            ToldStream(
                TestHTTPStream(
                    url: node.url, ca: ca, path: "/v1/apps/\(Self.app)/clients/\(client)/reloads",
                    token: try token(client), lastEventID: cursor))
        }
        var stream = try open()
        if !once, stream.status == 503 {
            try blockUntil("a stream opens") {
                stream.close()
                stream = try open()
                return stream.status != 503
            }
        }
        return stream
    }

    /// Polls once; returns the widgets that are stale and the cursor.
    package func poll(
        _ client: String, since cursor: String?, at node: GatewayProcess
    ) throws -> (stale: [String], cursor: String) {
        let answer = try PollAnswer(
            repeating {
                try http(node).request(
                    "GET", "/v1/apps/\(Self.app)/clients/\(client)/reloads",
                    token: token(client), headers: cursor.map { [("Last-Event-ID", $0)] } ?? [])
            })
        return (try answer.notifications.flatMap { try stale(in: $0) }, answer.cursor)
    }
}

/// Returns the characters whose widgets a notification names, or `all`.
private func stale(in notification: String) throws -> [String] {
    let notification = try claims(of: notification)
    if notification.all { return ["all"] }
    return notification.reload.map { $0.parameters.first?.value ?? $0.kind }
}

/// An event stream whose statements are collected.
package final class ToldStream: Sendable {
    private let stream: TestHTTPStream
    private let lastID = TestHTTPMonitor<String?>(nil)

    package init(_ stream: TestHTTPStream) { self.stream = stream }

    package var cursor: String? { lastID.update { $0 } }

    package var status: Int? { stream.head()?.status }

    /// Returns the widgets that the next notification names; heartbeats are passed over. `nil` once
    /// the stream is over, or if none comes in time.
    package func next(seconds: Double = Patience.seconds) throws -> [String]? {
        while case .block(let block)? = stream.next(timeout: seconds) {
            if let id = block.id, !id.isEmpty { lastID.update { $0 = id } }
            if let data = block.data, !data.isEmpty { return try stale(in: data) }
        }
        return nil
    }

    package func close() { stream.close() }
}
