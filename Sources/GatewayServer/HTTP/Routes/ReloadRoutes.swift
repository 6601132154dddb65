import CoreMetrics
import GatewayCore
import GatewayDocuments
import GatewayEngine
import NIOCore
import NIOHTTP1
import WidgetModel

/// The route of a client's stale timelines: polls and long-polls. Streams reach it only to be
/// rejected.
extension GatewayRoutes {
    /// The maximum wait of a long-poll, in seconds: many proxies give up after a minute.
    package static let waitSecondsMax = 50

    func getReloads(_ request: GatewayRequest, _ context: GatewayContext) async throws
        -> RouteResponse
    {
        let uris =
            request.header(FieldName.authorization) == nil && authorizer.takesCertificates
            ? await context.certificateURIs() : []
        var reloads = ReloadsRequest(request.head)
        if let redeemed = request.redeemed { reloads.authorization = try redeemed.get() }
        let identified = try admission.identify(
            reloads, from: request.account?.source, certificateURIs: { uris })
        let head = try await admission.prepare(identified)
        let admitted = try admission.admit(identified, at: head)
        if let claims = admitted.newClaims {
            _ = try await engine.clients.present(claims, of: admitted.key)
        }
        guard let shard = engine.loops.shard(of: context.channel.eventLoop) else {
            throw Problem.unavailable("This connection cannot be served; reconnect.")
        }
        // The response to HEAD tells the client nothing, so it counts neither as a stream nor as a
        // poll.
        let isHead = request.head.method == .HEAD
        if isHead, ReloadsRequest.acceptsEventStream(request.head.headers) {
            return .head(of: EventStreamHead(admission, admitted, from: admitted.cursor.point))
        }
        if reloads.wantsStream {
            // The connection's handler opens every admitted stream; this request was not admitted.
            throw Problem.unavailable("The gateway has too many streams; retry later.")
        }
        let wait = Self.wait(request.head.headers.values(FieldName.prefer))
        engine.registry.noteSeen(admitted.key, now: engine.clock.wallMilliseconds())
        if !isHead {
            metrics.polls.increment()
            if admitted.isPushable { engine.push?.submit([.polled(admitted.key)]) }
        }
        let answer = try await LongPoll.answer(
            admitted, wait: wait, on: shard, admission, channel: context.channel)
        let (stale, position) = (answer.stale, answer.position)
        if !isHead {
            engine.registry.notePolled(admitted.key, upTo: position, kinds: admitted.kinds)
        }
        var notifications: [JSONValue] = []
        if !stale.isEmpty {
            if !isHead { observeTold(answer, admitted) }
            let notification = try signer.notification(
                app: admitted.key.app, content: stale, cause: nil, now: engine.clock.wallSeconds())
            notifications.append(.string(String(decoding: notification, as: UTF8.self)))
        }
        var headers: HTTPHeaders = [
            FieldName.cacheControl: "no-store",
            FieldName.timelineCursor: admission.resumedCursor(answer.point, in: answer.epoch),
        ]
        if wait > 0 { headers.add(name: FieldName.preferenceApplied, value: "wait=\(wait)") }
        return RouteResponse(
            .ok,
            json: [
                "cursor": .string(engine.cursors.text(position, in: answer.epoch)),
                "notifications": .array(notifications),
            ], headers: headers)
    }

    /// Answers with a ticket for a stream, for clients that cannot send a token with it.
    func postTicket(_ request: GatewayRequest, _ context: GatewayContext) async throws
        -> RouteResponse
    {
        let token = try await token(request, context)
        let key = try context.clientKey()
        try authorizer.requireClient(token, key, backendMay: false)
        try await requireCatalog(of: key.app)
        // A page cannot state it with the stream, without a further request.
        let digest = request.header(FieldName.timelineRegistration)
        guard let record = try await engine.clients.record(key, digest: digest) else {
            throw Problem.unknownClient
        }
        try StreamAdmission.requireRegistered(digest, record)
        try request.account?.limits.admitTicket(of: key)
        let ticket = try await admission.tickets.issue(
            for: request.header(FieldName.authorization) ?? "")
        let expires = engine.clock.wallMilliseconds() + StreamTickets.lifetimeSeconds * 1_000
        return try RouteResponse(
            .created, document: IssuedTicket(ticket: ticket, expires: timestamp(expires)),
            headers: [FieldName.cacheControl: "no-store"])
    }

    /// Measures the time from a change to the poll that first reported it, for the latest change.
    private func observeTold(_ answer: LongPoll.Answer, _ admitted: StreamAdmission.Admitted) {
        let stale = answer.stale
        guard case .after = answer.point, !stale.all,
            engine.registry.noteTold(admitted.key, stale.sequence),
            let accepted = engine.changes.accepted.time(of: stale.sequence)
        else { return }
        metrics.freshnessSent[.poll]?.record(
            Double(max(0, engine.clock.wallMilliseconds() - accepted)) / 1000,
            kind: stale.kindLabel)
    }

    /// The seconds of `Prefer: wait=20` (RFC 7240 section 4.3).
    private static func wait(_ preferences: [String]) -> Int {
        for preference in preferences.flatMap({ $0.split(separator: ",") }) {
            let parts = preference.split(separator: "=", maxSplits: 1)
                .map { $0.filter { $0 != " " && $0 != "\"" } }
            if parts.count == 2, parts[0].lowercased() == "wait", let seconds = Int(parts[1]) {
                return min(max(0, seconds), waitSecondsMax)
            }
        }
        return 0
    }
}

/// Answers a poll when something is stale, or when its time is over.
enum LongPoll {
    typealias Answer = ShardLoop.PollAnswer

    /// Asks the shard. With `wait` seconds, waits until something becomes stale or the client has
    /// gone.
    ///
    /// - Parameter channel: The client's channel; `nil` for a client that does not go.
    /// - Throws: ``ProblemDetails``, also when a newer poll takes the place of this one.
    static func answer(
        _ admitted: StreamAdmission.Admitted, wait: Int, on shard: ShardLoop,
        _ admission: StreamAdmission, channel: (any Channel)?
    ) async throws -> Answer {
        let promise = shard.loop.makePromise(of: Answer.self)
        shard.loop.execute {
            shard.whenReached(admitted.head, in: admitted.cursor.epoch) {
                ask(
                    admitted, wait: wait, on: shard, admission, channel: channel,
                    promise: promise)
            }
        }
        return try await promise.futureResult.get()
    }

    private static func ask(
        _ admitted: StreamAdmission.Admitted, wait: Int, on shard: ShardLoop,
        _ admission: StreamAdmission, channel: (any Channel)?, promise: EventLoopPromise<Answer>
    ) {
        let answer: Answer
        do throws(ShardLoop.Failure) {
            answer = try shard.poll(admitted.opening)
        } catch {
            promise.fail(problem(error))
            return
        }
        guard wait > 0, answer.stale.isEmpty else {
            promise.succeed(answer)
            return
        }
        let sink = LongPollSink()
        let opening = ShardLoop.Opening(
            key: admitted.key, terms: admitted.terms,
            cursor: JudgedCursor(point: .after(answer.position), epoch: answer.epoch),
            kinds: admitted.kinds, grant: admitted.grant, expires: admitted.expires)
        let id: StreamID
        do throws(ShardLoop.Failure) {
            id = try admission.open(opening, on: shard) { _ in
                .sink(sink, wantsHeartbeat: false)
            }
        } catch {
            promise.fail(problem(error))
            return
        }
        let timer = shard.loop.assumeIsolated().scheduleTask(in: .seconds(Int64(wait))) {
            sink.end(nil)
        }
        sink.wake = { isReplaced in
            timer.cancel()
            shard.close(id)
            guard !isReplaced else { return promise.fail(Problem.tooManyStreams) }
            // Polled again from the client's own cursor: one answer, whatever became stale.
            do throws(ShardLoop.Failure) {
                promise.succeed(try shard.poll(admitted.opening))
            } catch {
                promise.fail(problem(error))
            }
        }
        guard let channel else { return }
        let handler = try? channel.pipeline.syncOperations.handler(type: HTTPConnectionHandler.self)
        if let handler { handler.whenPeerGoes { sink.end(nil) } } else { sink.end(nil) }
    }

    private static func problem(_ failure: ShardLoop.Failure) -> ProblemDetails {
        switch failure {
        case .refused(let error): Problem.engine(error)
        case .unavailable: Problem.unavailable("The gateway is shutting down; retry later.")
        }
    }
}

/// Wakes a long-poll with the first frame.
private final class LongPollSink: EventSink {
    var wake: ((_ isReplaced: Bool) -> Void)?

    func send(_ blocks: ByteBuffer) -> SinkResult {
        fire()
        return .gone
    }

    func end(_ farewell: ByteBuffer?) {
        fire()
    }

    func endReplaced(_ farewell: ByteBuffer) {
        fire(isReplaced: true)
    }

    private func fire(isReplaced: Bool = false) {
        let wake = wake
        self.wake = nil
        wake?(isReplaced)
    }
}
