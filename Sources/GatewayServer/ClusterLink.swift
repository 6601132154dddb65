import CurlMulti
import GatewayCluster
import GatewayCore
import GatewayDocuments
import GatewayEngine
import GatewayOperations
import GatewaySigning
import GatewayTLS
import Synchronization
import WidgetModel

/// The connections from this node to the other nodes of its cluster: one to each carries
/// everything.
///
/// Each node has a port for the others. Both ends derive its key from the cluster's secret.
final class ClusterLink: LogLeader {
    let node: ClusterNode
    let identity: NodeIdentity
    private let client: CurlClient
    private let clock: GatewayClock
    /// The time without contact to the leader.
    private let outage = Mutex(Outage())

    /// The longest wait for the answer to a request that is passed on, and to one of the node's own.
    private static let (patience, ownPatience) = (Duration.seconds(30), Duration.seconds(5))
    /// The most bytes of an answer: a page of registrations at their limit.
    private static let answerBytesMax = 64 << 20

    /// - Parameter secret: The secret of the cluster.
    /// - Throws: `SigningError`, `TLSError`, `CurlError`.
    init(_ node: ClusterNode, secret: [UInt8], clock: GatewayClock) throws {
        (self.node, self.clock) = (node, clock)
        identity = try NodeIdentity(
            secret: try derivedKey(
                from: secret, for: "nodes of a cluster", count: NodeIdentity.secretBytes))
        var configuration = CurlClient.Configuration(name: "nodes")
        configuration.trust = .certificates(identity.certificate)
        configuration.identity = (identity.certificate, identity.key)
        configuration.connectTimeout = .seconds(2)
        configuration.connectionsMax = 64
        configuration.bodyBytesMax = 16 << 20
        configuration.urlBytesMax = 16 << 10
        client = try CurlClient(configuration)
    }

    var isHere: Bool { node.isLeading }

    var state: ClusterState {
        let leader = node.leader
        return ClusterState(
            objection: node.objection, leader: leader?.name, generation: leader?.generation ?? 0,
            silence: outage.withLock { $0.objection(at: clock.now()) })
    }

    /// Notes the outcome of a contact with the leader, which it has several of each second.
    func contacted(_ failure: String?) {
        outage.withLock { outage in
            if let failure { outage.failed(failure, at: clock.now()) } else { outage.ended() }
        }
    }

    func barrier() async throws {
        do {
            try await node.barrier()
        } catch {
            throw EngineError.cluster(.noAnswer)
        }
    }

    func reportLoss() { node.reportLoss() }

    func pass(_ request: PassedRequest) async throws -> PassedAnswer {
        guard let leader = node.leader?.name, leader != node.name else {
            throw EngineError.cluster(.noWrites)
        }
        do throws(CurlError) {
            return try await ask(request, leader: leader)
        } catch {
            switch error.code {
            case .cancelled: throw CancellationError()
            case .badRequest:
                throw Problem.malformed("The path or a field has characters that are not allowed.")
            case .connectionEnded, .streamReset, .timedOut, .silent, .tooLarge:
                // It may have acted on it.
                let isReading = ["GET", "HEAD"].contains(request.method)
                throw EngineError.cluster(isReading ? .noWrites : .unknownOutcome)
            default: throw EngineError.cluster(.noWrites)
            }
        }
    }

    /// Sends a request to the leading node. The wait ends with that node's lease: a paused or
    /// disconnected leader does not answer, and another node leads meanwhile.
    private func ask(
        _ request: PassedRequest, leader: String, within patience: Duration = patience
    ) async throws(CurlError) -> PassedAnswer {
        let sent = await Self.result(while: { self.node.leader?.name == leader }) {
            () async -> Result<PassedAnswer, CurlError> in
            do throws(CurlError) {
                return .success(try await self.send(request, to: leader, within: patience))
            } catch {
                return .failure(error)
            }
        }
        guard let sent else {
            throw CurlError(Task.isCancelled ? .cancelled : .silent, "the node leads no more")
        }
        return try sent.get()
    }

    private static let lookInterval = Duration.milliseconds(250)

    /// Returns what an operation returns; cancels it, and returns `nil`, once a condition does not hold
    /// any more.
    static func result<Value: Sendable>(
        while condition: @escaping @Sendable () -> Bool,
        of operation: @escaping @Sendable () async -> Value
    ) async -> Value? {
        await withTaskGroup(of: Value?.self) { group in
            group.addTask { await operation() }
            group.addTask {
                while !Task.isCancelled, condition() {
                    try? await Task.sleep(for: Self.lookInterval)
                }
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
    }

    /// Sends a request to a node.
    private func send(
        _ request: PassedRequest, to node: String, within patience: Duration
    ) async throws(CurlError) -> PassedAnswer {
        guard let address = Address(node) else {
            throw CurlError(.badRequest, "the node's name is not HOST:PORT")
        }
        var sent = CurlRequest(
            request.method, origin: "https://\(NodeIdentity.name):\(address.port)",
            target: request.target, fields: try CurlFields(request.fields),
            body: request.body.isEmpty ? nil : request.body, timeout: patience)
        sent.address = address.host.contains(":") ? "[\(address.host)]" : address.host
        let answer = try await client.send(sent, bodyBytesMax: Self.answerBytesMax)
        if let failure = answer.failure { throw failure }
        return PassedAnswer(
            status: answer.status, fields: answer.head.fields, body: answer.body)
    }

    /// Sends a document to a node; returns the answer. Throws `CurlError`, or `ProblemDetails` for
    /// an answer that is an error.
    func post(_ document: some Encodable, _ target: String, to node: String) async throws
        -> JSONValue
    {
        let request = PassedRequest(
            "POST", target, fields: [("content-type", "application/json")],
            body: try JSONValue(encoding: document).serialized)
        let answer =
            node == self.node.leader?.name
            ? try await ask(request, leader: node, within: Self.ownPatience)
            : try await send(request, to: node, within: Self.ownPatience)
        let document = (try? JSONValue(parsing: answer.body)) ?? .null
        guard answer.status < 300 else {
            throw ProblemDetails(document, status: answer.status)
                ?? ProblemDetails(status: 503, code: "unavailable", title: "Unavailable")
        }
        return document
    }

    func present(_ claims: [String: [String]], of key: ClientKey) async throws {
        guard let leader = node.leader?.name, leader != node.name else {
            throw EngineError.cluster(.noWrites)
        }
        // Both names need no encoding.
        let target = GatewayRoutes.attributesPath.replacing(":app", with: key.app)
            .replacing(":client", with: key.client)
        do {
            _ = try await post(claims, target, to: leader)
        } catch is CurlError {
            throw EngineError.cluster(.unknownOutcome)
        }
        try await barrier()
    }

    func streams(of clients: [ClientKey], at node: String) async -> [[StreamStatus]] {
        let answer = try? await post(
            clients.map(NodeClient.init), GatewayRoutes.streamsPath, to: node)
        let lists = answer.flatMap { try? [[ExplainedStream]](decoding: $0) } ?? []
        return lists.map { streams in
            streams.map { stream in
                StreamStatus(
                    watermark: stream.watermark, kinds: stream.kinds.map(Set.init),
                    isLagging: stream.lagging)
            }
        }
    }
}
