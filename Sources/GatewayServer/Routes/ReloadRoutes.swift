import CoreMetrics
import GatewayCore
import GatewaySigning
import NIOCore
import NIOHTTP1
import WidgetModel

/// What is stale for a client: polls and long-polls. Streams never come here but to be refused.
extension GatewayRoutes {
    /// Longest wait of a long-poll, in seconds.
    static let waitSecondsMax = 60

    func getReloads(_ request: GatewayRequest, _ context: GatewayContext) async throws
        -> GatewayAnswer
    {
        let uris =
            request.header(FieldName.authorization) == nil && authorizer.takesCertificates
            ? await context.certificateURIs() : []
        let reloads = ReloadsRequest(request.head)
        let admitted = try admission.admit(reloads, certificateURIs: { uris })
        guard let shard = admission.loops.shard(of: context.channel.eventLoop) else {
            throw Problem.unavailable("This connection cannot be served; connect again.")
        }
        if reloads.wantsStream {
            // The gate keeps every stream that it admits; what comes here was refused by it.
            guard admission.registry.admitStream(admitted.key) else { throw Problem.tooManyStreams }
            admission.registry.releaseStream(admitted.key)
            throw Problem.unavailable("The gateway holds as many streams as it may; ask again.")
        }
        let wait = Self.wait(request.head.headers.values(FieldName.prefer))
        metrics.polls.increment()
        admission.registry.noteSeen(admitted.key)
        if admitted.record.isPushable { sequencer.push?.submit([.polled(admitted.key)]) }
        let answer = try await LongPoll.answer(admitted, wait: wait, on: shard, admission.registry)
        let (stale, position) = answer
        admission.registry.notePolled(admitted.key, upTo: position, kinds: admitted.kinds)
        var notifications: [JSONValue] = []
        if !stale.isEmpty {
            observeTold(stale, admitted)
            let notification = try press.notification(
                app: admitted.key.app, content: stale, causeTime: nil, now: desk.wallSeconds())
            notifications.append(.string(String(decoding: notification, as: UTF8.self)))
        }
        var headers: HTTPHeaders = [
            FieldName.cacheControl: "no-store",
            FieldName.timelineCursor: admission.resumedCursor(admitted.point),
        ]
        if wait > 0 { headers.add(name: FieldName.preferenceApplied, value: "wait=\(wait)") }
        return GatewayAnswer(
            .ok,
            json: [
                "cursor": .string(desk.text(position)), "notifications": .array(notifications),
            ], headers: headers)
    }

    /// Measures how long a change took to be told by a poll: the latest one, when it was told first.
    private func observeTold(_ stale: StaleSet, _ admitted: StreamAdmission.Admitted) {
        guard case .after = admitted.point, !stale.all,
            admission.registry.noteTold(admitted.key, stale.sequence),
            let accepted = sequencer.acceptTimes.time(of: stale.sequence)
        else { return }
        metrics.freshnessSent[.poll].record(
            Double(max(0, desk.wallMilliseconds() - accepted)) / 1000, kind: stale.kindLabel)
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
    typealias Answer = (stale: StaleSet, position: UInt64)

    /// Asks the shard; with `wait` seconds, holds on until something becomes stale.
    static func answer(
        _ admitted: StreamAdmission.Admitted, wait: Int, on shard: ShardLoop,
        _ registry: Registry
    ) async throws -> Answer {
        let promise = shard.loop.makePromise(of: Answer.self)
        shard.loop.execute {
            shard.whenReached(admitted.head) {
                ask(admitted, wait: wait, shard, registry, promise)
            }
        }
        return try await promise.futureResult.get()
    }

    private static func ask(
        _ admitted: StreamAdmission.Admitted, wait: Int, _ shard: ShardLoop, _ registry: Registry,
        _ promise: EventLoopPromise<Answer>
    ) {
        let (record, app) = (admitted.record, admitted.key.app)
        guard
            let answer = shard.poll(
                record, app: app, since: admitted.point, kinds: admitted.kinds,
                vouched: admitted.vouched)
        else {
            promise.fail(Problem.unknownApp)
            return
        }
        guard wait > 0, answer.stale.isEmpty else {
            promise.succeed(answer)
            return
        }
        guard registry.admitStream(admitted.key) else {
            promise.fail(Problem.tooManyStreams)
            return
        }
        let sink = LongPollSink()
        let opening = ShardLoop.Opening(
            key: admitted.key, record: record, vouched: admitted.vouched,
            point: .after(answer.position), kinds: admitted.kinds, expires: admitted.expires)
        guard let id = shard.open(opening, on: .sink(sink, wantsHeartbeat: false)) else {
            registry.releaseStream(admitted.key)
            promise.fail(Problem.unavailable("The gateway is stopping; try again."))
            return
        }
        let timer = shard.loop.assumeIsolated().scheduleTask(in: .seconds(Int64(wait))) {
            sink.end(nil)
        }
        sink.wake = {
            timer.cancel()
            shard.close(id)
            // Asked again from the client's own cursor: one answer, whatever became stale.
            let answer = shard.poll(
                registry.record(admitted.key) ?? record, app: app, since: admitted.point,
                kinds: admitted.kinds, vouched: admitted.vouched)
            if let answer { promise.succeed(answer) } else { promise.fail(Problem.unknownApp) }
        }
    }
}

/// Wakes a long-poll with the first frame.
private final class LongPollSink: EventSink {
    var wake: (() -> Void)?

    func send(_ blocks: ByteBuffer) -> SinkResult {
        fire()
        return .gone
    }

    func end(_ farewell: ByteBuffer?) {
        fire()
    }

    private func fire() {
        let wake = wake
        self.wake = nil
        wake?()
    }
}
