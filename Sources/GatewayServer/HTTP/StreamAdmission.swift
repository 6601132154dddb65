import Foundation
import GatewayCore
import GatewayEngine
import GatewayOperations
import GatewaySigning
import GatewayStorage
import GatewayTLS
import Logging
import WidgetModel

/// Decides on the admission of streams and polls: the same rules for a connection's handler and for
/// the route.
package struct StreamAdmission: Sendable {
    let engine: Engine
    let authorizer: Authorizer
    let requestLimits: RequestLimits
    let date: HTTPDateCache
    let streamSettings: StreamSettings
    /// The maximum number of streams of all clients together: they outlive the count of
    /// connections.
    let streamsMax: Int
    let tickets: StreamTickets
    /// The pages that may read streams.
    var cors = CORSPolicy([])

    /// The path of a client's reloads: app and client, in this order.
    static let path = GatewayRoute.path("/v1/apps/:app/clients/:client/reloads")

    /// A request for stale timelines whose sender is known.
    struct Identified: Sendable {
        let key: ClientKey
        let token: VerifiedToken
        let grant: StreamGrant
        /// The digest of the registration that the client states.
        let registration: String?
        let wantsStream: Bool
        let kinds: Set<String>?
        /// The text of the cursor that the client presents.
        let cursor: String?
        /// The origin of the web page that sends it.
        let origin: String?
    }

    /// An admitted request for stale timelines, as of the moment it was read. The registration is
    /// read again when the response is made, because it may have changed by then.
    struct Admitted: Sendable {
        let key: ClientKey
        /// The terms that the registration in force must meet, now and when the response is made.
        let terms: RegistrationTerms
        /// The attributes that the token vouches for, if the registration in force has other ones
        /// from the previous token: these have to be applied first.
        let newClaims: [String: [String]]?
        /// Whether the client could be pushed to at the time of the request.
        let isPushable: Bool
        /// The cursor that the client presented.
        let cursor: JudgedCursor
        let kinds: Set<String>?
        /// The end of the token's validity, in seconds since 1970.
        let expires: Int64
        /// The token that admitted it.
        let grant: StreamGrant
        /// The position that the shard must have reached before it answers.
        let head: UInt64
        /// The origin of the web page that sent it.
        let origin: String?

        var opening: ShardLoop.Opening {
            .init(
                key: key, terms: terms, cursor: cursor, kinds: kinds, grant: grant,
                expires: expires)
        }
    }

    /// Checks the token, names and rates. `source` is `nil` if only the request's connection
    /// counts.
    func identify(
        _ request: ReloadsRequest, from source: SourceAddress?,
        certificateURIs: () -> [String]
    ) throws(ProblemDetails) -> Identified {
        let segments = PathSegments(request.path)
        guard segments.match(Self.path) else { throw Problem.noSuchRoute }
        let names = segments.names(Self.path)
        guard let app = names[0].text.percentDecoded, let client = names[1].text.percentDecoded
        else { throw Problem.malformed("The path is not percent-encoded UTF-8.") }
        // First, because a ticket in a malformed query is not found.
        let parameters = try QueryText.parameters(segments.query)
        let revision = authorizer.access.revision.current
        let token = try authorizer.token(
            request.authorization, from: source, requestLimits, certificateURIs: certificateURIs)
        guard Identifier.isValid(app) else { throw Problem.wrongName("app") }
        guard Identifier.isValid(client) else { throw Problem.wrongName("client") }
        let key = ClientKey(app: app, client: client)
        try authorizer.requireClient(token, key, backendMay: false)
        let kinds = parameters.filter { $0.name == "kind" }.map(\.value)
        return Identified(
            key: key, token: token,
            grant: StreamGrant(token, at: revision, by: authorizer.access),
            registration: request.registration, wantsStream: request.wantsStream,
            kinds: kinds.isEmpty ? nil : Set(kinds),
            cursor: request.lastEventID ?? parameters.first { $0.name == "since" }?.value,
            origin: request.origin)
    }

    /// Returns the `Authorization` field that a ticket stands for, once. Throws 401, 429 or 503.
    func redeem(_ ticket: String, from source: SourceAddress?) async throws -> String {
        func requireFew() throws {
            let excess = requestLimits.excessOfRefusedTokens(source, of: .ticket)
            if let excess { throw excess }
        }
        // Only where each costs the leader a request: invalid tickets of others at this address
        // must not shut out valid ones where it costs nothing to tell them apart.
        if !tickets.areHere { try requireFew() }
        do {
            return try await tickets.redeem(ticket)
        } catch let problem as ProblemDetails where problem.status == 401 {
            try requireFew()
            requestLimits.noteRefusedToken(source, of: .ticket)
            let from = "\(source ?? .unknown)"
            authorizer.log?.log(
                .rejectedToken, of: "\(from) \(problem.code)",
                ["from": "\(from)", "reason": "\(problem.code)"])
            throw problem
        }
    }

    /// Whether a stream can be admitted by what this gateway has in memory.
    func isPrepared(_ request: Identified) -> Bool {
        engine.clients.isCurrent(request.key, digest: request.registration)
            && engine.cursors.isKnown(request.cursor)
            && (engine.catalogs.document(of: request.key.app) != nil)
    }

    /// Returns the position to answer at, once catalog, registration and cursor are in memory. For
    /// a poll it includes every change that any gateway had accepted; a stream catches up later.
    /// Throws ``EngineError/cluster(_:)`` if they cannot be read now.
    func prepare(_ request: Identified) async throws -> UInt64 {
        let head =
            request.wantsStream && engine.catalogs.document(of: request.key.app) != nil
            ? engine.store.head : try await engine.log.barrier()
        _ = try await engine.clients.record(request.key, digest: request.registration)
        try await engine.cursors.find(request.cursor)
        return head
    }

    /// Checks the registration. `head` is the position to answer at; by default the present one.
    func admit(
        _ request: Identified, at head: UInt64? = nil
    ) throws(ProblemDetails) -> Admitted {
        let key = request.key
        guard engine.catalogs.document(of: key.app) != nil else { throw Problem.unknownApp }
        guard let record = engine.registry.record(key) else { throw Problem.unknownClient }
        let newClaims = try authorizer.newClaims(request.token, record)
        try Self.requireRegistered(request.registration, record)
        let cursor = engine.cursors.judge(request.cursor)
        // It must not be forgotten before the stream is open.
        if request.wantsStream { engine.clients.arrived(key) }
        // A cursor presented for some kinds confirms nothing about the others.
        if request.kinds == nil, case .after(let sequence) = cursor.point {
            engine.clients.resumed(key, from: sequence, request.wantsStream ? .stream : nil)
        }
        return Admitted(
            key: key, terms: RegistrationTerms(vouched: request.token.attributes),
            newClaims: newClaims, isPushable: record.isPushable, cursor: cursor,
            kinds: request.kinds,
            expires: authorizer.access.verifier.policy.end(of: request.token),
            grant: request.grant, head: head ?? engine.store.head, origin: request.origin)
    }

    /// Requires that the client's registration digest, if it states one, is that of the
    /// registration in force.
    static func requireRegistered(
        _ digest: String?, _ record: ClientRecord
    ) throws(ProblemDetails) {
        guard let digest, digest != record.digest else { return }
        throw Problem.registrationMismatch(record.digest)
    }

    /// Whether the gateway can hold another stream. A client always can: see ``open(_:on:by:)``.
    var hasRoom: Bool { engine.loops.openStreams < streamsMax }

    /// Opens a stream, or a poll that waits. If the client has more of them than it may, it takes the
    /// place of the oldest.
    func open(
        _ opening: ShardLoop.Opening, on shard: ShardLoop,
        by makeCarrier: (ResumePoint) -> ShardLoop.Carrier?
    ) throws(ShardLoop.Failure) -> StreamID {
        let (id, replaced) = try shard.open(opening, on: makeCarrier)
        if let replaced { engine.loops.end(replaced) }
        return id
    }

    /// The cursor that a response states as the one at which it resumed.
    func resumedCursor(_ point: ResumePoint, in epoch: EpochID) -> String {
        guard case .after(let sequence) = point else { return "" }
        return engine.cursors.text(sequence, in: epoch)
    }
}
