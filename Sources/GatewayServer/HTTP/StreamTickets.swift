import GatewayEngine
import GatewaySigning
import NIOCore
import Synchronization
import WidgetModel

/// Tickets for streams: each stands for the token of the client that asked for it, once and for a
/// short time.
///
/// A ticket is a random text without meaning. The gateway that leads the log remembers which
/// `Authorization` field it stands for; other nodes ask it. So a ticket is good once for all nodes
/// together, and the token is judged where the stream is opened, as if it had come with the request.
/// A restart, or another leader, forgets all tickets.
package final class StreamTickets: Sendable {
    /// The parameter of a query that has a ticket.
    static let parameter = "ticket"
    /// The leader's route for tickets of other nodes.
    package static let path = "/nodes/tickets"
    package static let lifetimeSeconds: Int64 = 30
    /// The maximum number of bytes that the tickets occupy; beyond it, the oldest are forgotten.
    package static let bytesMax = 32 << 20
    /// The bytes that a ticket occupies besides its `Authorization` field, until its time is over.
    private static let entryBytes = 256
    /// 192 bits, which cannot be found by trying.
    private static let randomBytes = 24

    private struct State {
        /// The `Authorization` field of each ticket that is not used.
        var authorizations: [String: String] = [:]
        /// All tickets whose time is not over, oldest first.
        var issued = CircularBuffer<(ticket: String, expires: Int64)>()
        var bytes = 0

        mutating func add(_ ticket: String, _ authorization: String, now: Int64) {
            authorizations[ticket] = authorization
            issued.append((ticket, now + lifetimeSeconds * 1_000))
            bytes += entryBytes + authorization.utf8.count
            forget(now: now)
        }

        mutating func use(_ ticket: String, now: Int64) -> String? {
            forget(now: now)
            return remove(ticket)
        }

        private mutating func forget(now: Int64) {
            while let oldest = issued.first, oldest.expires <= now || bytes > bytesMax {
                issued.removeFirst()
                _ = remove(oldest.ticket)
                bytes -= entryBytes
            }
        }

        private mutating func remove(_ ticket: String) -> String? {
            guard let authorization = authorizations.removeValue(forKey: ticket) else { return nil }
            bytes -= authorization.utf8.count
            return authorization
        }
    }

    private let state = Mutex(State())
    /// The gateway that leads the log; `nil` if there is only this one.
    private let leader: (any LogLeader)?
    /// Monotonic milliseconds.
    private let now: @Sendable () -> Int64

    package init(leader: (any LogLeader)?, now: @escaping @Sendable () -> Int64) {
        (self.leader, self.now) = (leader, now)
    }

    /// Returns a ticket that stands for an `Authorization` field. Throws ``EngineError/cluster(_:)``
    /// if no leader answers, or `SigningError`.
    func issue(for authorization: String) async throws -> String {
        let answer = try await ask(NodeTicket(authorization: authorization))
        guard let ticket = answer.ticket else { throw EngineError.cluster(.noWrites) }
        return ticket
    }

    /// Returns the `Authorization` field that a ticket stands for, and uses the ticket up. Throws 401
    /// if it stands for none, or ``EngineError/cluster(_:)`` if no leader answers.
    func redeem(_ ticket: String) async throws -> String {
        let answer = try await ask(NodeTicket(ticket: ticket))
        guard let authorization = answer.authorization else { throw Problem.ticketInvalid }
        return authorization
    }

    /// Whether this gateway remembers the tickets.
    var areHere: Bool { leader?.isHere ?? true }

    private func ask(_ asked: NodeTicket) async throws -> NodeTicket {
        guard let leader, !leader.isHere else { return try answer(asked) }
        let passed = try await leader.pass(
            PassedRequest(
                "POST", Self.path, fields: [(FieldName.contentType, "application/json")],
                body: try JSONValue(encoding: asked).serialized))
        guard passed.status == 200 else { throw EngineError.cluster(.noWrites) }
        return try NodeTicket(decoding: try JSONValue(parsing: passed.body))
    }

    /// Issues or redeems a ticket here. A ticket that stands for nothing has an empty answer. Throws
    /// `SigningError`.
    func answer(_ asked: NodeTicket) throws -> NodeTicket {
        let now = now()
        if let ticket = asked.ticket {
            return NodeTicket(authorization: state.withLock { $0.use(ticket, now: now) })
        }
        let ticket = Base64.url.string(try secureRandom(count: Self.randomBytes))
        state.withLock { $0.add(ticket, asked.authorization ?? "", now: now) }
        return NodeTicket(ticket: ticket)
    }
}

/// A question between nodes, and its answer: a ticket for an `Authorization` field, or the reverse.
struct NodeTicket: Codable, Sendable {
    var ticket: String?
    var authorization: String?
}
