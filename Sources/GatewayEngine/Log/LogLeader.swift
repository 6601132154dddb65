import GatewayCore

/// The state of a gateway as one of several.
package struct ClusterState: Sendable, Equatable {
    /// Why it has neither followed nor written the log for some seconds; `nil` if it does.
    package let objection: String?
    /// The name of the gateway that leads; `nil` if none does, as far as this one knows.
    package let leader: String?
    /// The number of times that the lead was taken.
    package let generation: Int64
    /// The reason why it has not reached that gateway for some seconds; `nil` if it does.
    package let silence: String?

    package init(
        objection: String?, leader: String? = "leader", generation: Int64 = 1,
        silence: String? = nil
    ) {
        (self.objection, self.leader, self.generation) = (objection, leader, generation)
        self.silence = silence
    }
}

/// The gateway that writes the log, as seen by one of the gateways that share the log.
package protocol LogLeader: Sendable {
    /// Whether it is this gateway.
    var isHere: Bool { get }

    var state: ClusterState { get }

    /// Waits until this gateway has everything that any had answered for at the time of the call.
    ///
    /// - Throws: ``EngineError/cluster(_:)`` if that cannot be known now.
    func barrier() async throws

    /// Asks it to void all cursors, because one proves that the log lost a tail.
    func reportLoss()

    /// Passes a request to it and returns its answer.
    ///
    /// - Throws: ``EngineError/cluster(_:)``.
    func pass(_ request: PassedRequest) async throws -> PassedAnswer

    /// Passes it the attributes that a client's current token vouches for. Returns when both
    /// gateways have applied them.
    ///
    /// - Throws: ``EngineError``, as ``ClientDirectory/present(_:of:)`` does.
    func present(_ claims: [String: [String]], of key: ClientKey) async throws

    /// Returns the open streams that clients have at another gateway of the log, one list for each;
    /// empty lists if it does not answer.
    func streams(of clients: [ClientKey], at node: String) async -> [[StreamStatus]]
}

/// A request that another gateway answers.
package struct PassedRequest: Sendable {
    package let method: String
    /// Path and query.
    package let target: String
    package let fields: [(name: String, value: String)]
    package let body: [UInt8]

    package init(
        _ method: String, _ target: String, fields: [(name: String, value: String)], body: [UInt8]
    ) {
        (self.method, self.target, self.fields, self.body) = (method, target, fields, body)
    }
}

/// The answer of another gateway.
package struct PassedAnswer: Sendable {
    package let status: Int
    package let fields: [(name: String, value: String)]
    package let body: [UInt8]

    package init(status: Int, fields: [(name: String, value: String)], body: [UInt8]) {
        (self.status, self.fields, self.body) = (status, fields, body)
    }
}
