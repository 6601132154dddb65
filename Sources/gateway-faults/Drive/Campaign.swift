import Foundation
import GatewayTestSupport
import WidgetModel

/// Gateways under faults: a backend that posts, clients that listen, and the record of both. All of
/// them continue while a row kills, stops or starves a gateway, and repeat requests without an
/// answer.
final class Campaign: Sendable {
    struct Load: Sendable {
        var streams = 10
        var pollers = 4
        /// Clients that register for the first time while all else goes on, one after the other.
        var newClients = 0
        var posters = 3
        /// Longest pause between two posts of one poster, in milliseconds.
        var postPauseMilliseconds = 20
        var changesRegistrations = true
        /// The number of those who put catalogs at the same time.
        var catalogWriters = 1
        /// Share of streams that are cut at a random byte, percent.
        var cutPercent = 20
        /// Seconds until a token expires.
        var tokenLifetime = 3_600
        /// Statuses of posts, streams and polls that are no fault.
        var allowedStatuses: Set<Int> = [429, 503]
    }

    /// The parts of the load that still run.
    struct Stage: Sendable {
        var isChanging = true
        var isListening = true
        /// Whether streams are held and polls made all the time.
        var hasListeners = false
        var threads = 0
        var nextBatch = 0
        /// Batches without a 202 so far.
        var open: [Int: [Subject]] = [:]
        /// Batches answered 202, in order.
        var accepted: [(batch: Int, subjects: [Subject])] = []
        /// The time of the last 202.
        var lastAccepted = 0.0
        /// The catalog with the highest sequence of those answered.
        var catalog: (text: String, sequence: UInt64) = ("", 0)
        /// Catalogs without an answer that may be in force, each with the time at which it was sent.
        var unansweredCatalogs: [(text: String, sent: Double)] = []
    }

    let deployment: any Deployment
    let recorder = Recorder()
    let signatures = SignatureLog()
    let stage = TestHTTPMonitor(Stage())
    let clients: [FaultClient]
    /// Clients that poll only when all is over.
    let newClients: [FaultClient]
    let backend: String
    let load: Load
    /// `source` of all events: what an earlier run posted is no duplicate.
    let run: String

    /// Puts the catalog and registers the clients.
    init(_ deployment: any Deployment, _ load: Load, _ generator: inout SplitMix64) throws {
        self.deployment = deployment
        self.load = load
        run = "run-\(generator.next())"
        backend = try deployment.backendToken(lifetime: load.tokenLifetime)
        let names = (0..<(load.streams + load.pollers)).map { "client-\($0)" }
        let newNames = (0..<load.newClients).map { "new-\($0)" }
        let tokens = try deployment.clientTokens(
            names + newNames, lifetime: load.tokenLifetime)
        var clients: [FaultClient] = []
        for (index, (name, token)) in zip(names, tokens).enumerated() {
            let version: TestHTTPVersion = index % 3 == 2 ? .two : .one
            clients.append(
                FaultClient(
                    name: name, token: token,
                    channel: index < load.streams ? .stream(version) : .poll(version),
                    placement: .random(isParty: index % 2 == 1, using: &generator)))
        }
        self.clients = clients
        newClients = zip(newNames, tokens.dropFirst(names.count)).enumerated().map {
            index, client in
            FaultClient(
                name: client.0, token: client.1, channel: .poll(.one),
                placement: .random(isParty: index % 2 == 1, using: &generator))
        }
        let http = deployment.next.http()
        try putCatalog(http, variant: 0)
        for client in clients { try register(client, client.placement, http, buildsAnew: true) }
    }

    var gateway: GatewayProcess { deployment.next }
    var isChanging: Bool { stage.update { $0.isChanging } }
    var isListening: Bool { stage.update { $0.isListening } }

    /// Starts posting, registering and listening.
    func start(_ generator: inout SplitMix64) {
        for poster in 0..<load.posters {
            spawn(&generator) { self.post(as: poster, &$0) }
        }
        if load.changesRegistrations { spawn(&generator) { self.changeRegistrations(&$0) } }
        if load.newClients > 0 { spawn(&generator) { _ in self.registerNewClients() } }
        for _ in 0..<load.catalogWriters { spawn(&generator) { self.putCatalogs(&$0) } }
        listen(clients, &generator)
    }

    /// Starts the stream or the polling of these clients.
    func listen(_ clients: [FaultClient], _ generator: inout SplitMix64) {
        stage.update { $0.hasListeners = true }
        for client in clients {
            spawn(&generator) {
                switch client.channel {
                case .stream(let version): self.hold(client, version, &$0)
                case .poll(let version): self.poll(client, version, &$0)
                }
            }
        }
    }

    /// Runs `body` on a thread of its own, with random numbers of its own.
    func spawn(
        _ generator: inout SplitMix64,
        _ body: @escaping @Sendable (inout SplitMix64) -> Void
    ) {
        let seed = generator.next()
        stage.update { $0.threads += 1 }
        onThread { [self] in
            var generator = SplitMix64(seed: seed)
            body(&generator)
            stage.update { $0.threads -= 1 }
        }
    }

    /// The number of requests after which a new connection is made: to the next gateway, where
    /// there are several.
    private static let requestsPerConnection = 50
    /// The seconds after which a request is given up.
    static let requestTimeout = 15

    /// Repeats `body` while `condition` holds; after a failure it begins with a new connection.
    func keepTrying(
        while condition: () -> Bool, version: TestHTTPVersion = .one,
        _ body: (TestHTTP) throws -> Void
    ) {
        while condition() {
            do {
                let http = gateway.http(version, timeoutSeconds: Self.requestTimeout)
                for _ in 0..<Self.requestsPerConnection where condition() { try body(http) }
            } catch {
                pause(seconds: 0.03)
            }
        }
    }

    func publishedKeys() throws -> [UInt8] {
        let answer = try gateway.http(timeoutSeconds: 5).request("GET", "/.well-known/jwks.json")
        guard answer.status == 200 else { throw TestFailure(answer.text) }
        return answer.body
    }
}
