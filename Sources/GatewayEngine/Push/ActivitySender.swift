import CatalogModel
import CurlMulti
import GatewayCore
import GatewayDelivery
import GatewayOperations
import GatewaySigning
import Synchronization
import WidgetModel

/// Sends pushes for Live Activities through APNs, with the content that their app's backend has at
/// that moment.
struct ActivitySender: PushSender {
    let contents: ActivityContents
    let asked: PushLoop.Dependencies.Asked
    let apns: @Sendable () -> (any PushSender)?

    func send(_ order: DuePush, _ finished: @escaping @Sendable (PushReport) -> Void) {
        guard let activity = order.activity else { return finished(PushReport(result: .notSent)) }
        if let start = activity.start, contents.hasExpired(start) {
            return finished(PushReport(result: .content(.expired)))
        }
        contents.run {
            do {
                let (answer, isNew) = try await contents.content(of: activity, for: order)
                // Whatever is wrong with the push then, the source has answered.
                guard await asked(isNew), let sender = apns() else {
                    throw PushReport(result: .notSent)
                }
                // A start may be over already.
                guard let content = answer, activity.start == nil || content.event != .end else {
                    throw PushReport(result: .content(.nothing))
                }
                var filled = order
                filled.activity?.payload = try content.payload(
                    at: activity.timestamp, starting: activity.starting(in: order.environment))
                sender.send(filled) { report in
                    var report = report
                    report.ends = content.event == .end
                    finished(report)
                }
            } catch {
                finished(PushReport(withoutContent: error))
            }
        }
    }
}

/// Asks content sources: one question for all pushes that need the same answer. Errors are the
/// reports of pushes without content.
final class ActivityContents: Sendable {
    /// Sends a question to a source.
    typealias Ask =
        @Sendable (WebhookMessage, WebhookEndpoint, WebhookSigner) async throws(CurlError)
        -> WebhookSender.Answer

    private struct Question: Hashable {
        let url: String
        let body: [UInt8]
    }

    /// `nil` where the source has nothing to say.
    private typealias Answer = Result<ActivityContent?, PushReport>

    /// An answer, or a question in flight.
    private struct Kept {
        /// The position of the log at which it was asked.
        let asOf: UInt64
        /// The time at which it was asked, ms.
        let at: Int64
        let answer: Task<Answer, Never>
    }

    /// The time for which an answer is used, ms.
    private static let keptTime: Int64 = 60_000
    /// The maximum number of answers kept for an app.
    private static let keptMax = 256

    private let services: WebhookPushes.Content
    private let ask: Ask
    /// Returns when no question is in flight, and lets no more be asked.
    private let end: @Sendable () async -> Void
    private let kept = Mutex<[String: [Question: Kept]]>([:])
    /// The pushes that wait for their content, by number.
    private let pushes = Mutex<(count: UInt64, tasks: [UInt64: Task<Void, Never>])>((0, [:]))

    init(
        _ services: WebhookPushes.Content, drain: @escaping @Sendable () async -> Void = {},
        ask: @escaping Ask
    ) {
        (self.services, self.end, self.ask) = (services, drain, ask)
    }

    /// Runs what a push does until it is passed on, for ``drain()`` to wait for.
    func run(_ push: @escaping @Sendable () async -> Void) {
        pushes.withLock { pushes in
            pushes.count += 1
            let number = pushes.count
            pushes.tasks[number] = Task { [self] in
                await push()
                self.pushes.withLock { $0.tasks[number] = nil }
            }
        }
    }

    /// Returns when each push has its content and was passed on, or has failed; lets no more be
    /// asked for.
    func drain() async {
        await end()
        for push in pushes.withLock({ Array($0.tasks.values) }) { await push.value }
    }

    /// - Throws: ``Faults`` if memory is exhausted.
    convenience init(
        _ configuration: PushConfiguration, _ files: PushFiles, _ services: WebhookPushes.Content
    ) throws(Faults) {
        let apps = Set(configuration.apps.map(\.app)).count
        let requestsMax = PushScheduler.questionsPerApp * apps
        let sender: WebhookSender
        do throws(CurlError) {
            // As many of each as there are questions, and names of each app: no app waits for
            // another's source or name.
            sender = try WebhookSender(
                name: "content", addressGuard: AddressGuard(allowed: files.webhookRanges),
                resolver: .system(
                    lookUpsMax: PushScheduler.questionsPerApp,
                    waitingMax: PushScheduler.questionsPerApp, deadline: .seconds(4)),
                trust: files.webhookTrust, connectionsMax: requestsMax, requestsMax: requestsMax)
        } catch {
            throw Faults("apns", error.message)
        }
        self.init(
            services, drain: { await sender.drain() },
            ask: { message, endpoint, signer async throws(CurlError) in
                try await sender.ask(message, to: endpoint, signer: signer)
            })
    }

    /// Returns whether a start may no longer be pushed.
    func hasExpired(_ start: RecentStart) -> Bool {
        start.expiresAt <= services.clock.wallMilliseconds()
    }

    /// Returns the content for a push, if there is any, and whether its source was asked for it. A
    /// recent answer to the same question is used if it was asked after the push's change.
    func content(
        of activity: DuePush.Activity, for order: DuePush
    ) async throws(PushReport) -> (content: ActivityContent?, isNew: Bool) {
        let app = order.client.app
        let question = Question(
            url: activity.source.url, body: activity.question(from: order.client))
        let now = services.clock.now()
        let (answer, isNew) = kept.withLock { kept -> (Task<Answer, Never>, Bool) in
            if let known = kept[app]?[question], known.asOf >= order.content.sequence,
                now - known.at <= Self.keptTime
            {
                return (known.answer, false)
            }
            let answer = Task { await self.answer(to: question, of: app) }
            var answers = kept[app] ?? [:]
            // Old answers are not used again, and may belong to a client that was erased.
            answers = answers.filter { now - $0.value.at <= Self.keptTime }
            answers[question] = Kept(asOf: order.position, at: now, answer: answer)
            let isOver = answers.count > Self.keptMax
            if isOver, let oldest = answers.min(by: { $0.value.at < $1.value.at })?.key {
                answers[oldest] = nil
            }
            kept[app] = answers
            return (answer, true)
        }
        let result = await answer.value
        if case .failure = result {
            kept.withLock { kept in
                if kept[app]?[question]?.answer == answer { kept[app]?[question] = nil }
            }
        } else if !isNew {
            services.asked(app, "kept")
        }
        return (try result.get(), isNew)
    }

    private func answer(to question: Question, of app: String) async -> Answer {
        let result: Answer
        do {
            result = .success(try await read(question, of: app))
        } catch {
            result = .failure(PushReport(withoutContent: error))
        }
        let word: String? =
            switch result {
            case .success(let content): content == nil ? "nothing" : "asked"
            case .failure(let report): report.reason
            }
        if let word { services.asked(app, word) }
        return result
    }

    private func read(_ question: Question, of app: String) async throws -> ActivityContent? {
        guard let signer = services.signer() else { throw ContentFailure.notSigned }
        let message = WebhookMessage(
            id: "ask_" + String(UInt64.random(in: .min ... .max), radix: 16),
            timestamp: services.clock.wallSeconds(), body: question.body, app: app)
        let endpoint = try WebhookEndpoint(question.url)
        let answer = try await ask(message, endpoint, signer)
        if answer.status == 204 { return nil }
        guard answer.status == 200 else {
            throw PushReport(.status, retryAfter: answer.retryAfter)
        }
        // The end of an answer that is too large is missing, too.
        if let failure = answer.failure, answer.body.count <= ActivityContent.bytesMax {
            throw failure
        }
        return try ActivityContent(answer.body)
    }
}

extension PushReport: Error {
    fileprivate init(_ failure: ContentFailure, retryAfter: Int64? = nil) {
        self.init(
            result: .content(.failed(failure, retryAfter: retryAfter)), reason: failure.rawValue)
    }

    /// Creates the report of a push that was not sent.
    fileprivate init(withoutContent error: any Error) {
        if let report = error as? PushReport {
            self = report
            return
        }
        switch (error as? CurlError)?.code {
        case .closed?, .busy?, .cancelled?, .noMemory?: self.init(result: .notSent)
        case .addressNotAllowed?: self.init(.notAllowed)
        case .timedOut?, .silent?, .notSent?: self.init(.timedOut)
        case .badRequest?: self.init(.notSigned)
        default: self.init(error as? ContentFailure ?? .unreachable)
        }
    }
}

extension DuePush.Activity {
    /// The question to its source: the same for all activities with the same attributes if one
    /// answer is for all of them.
    fileprivate func question(from client: ClientKey) -> [UInt8] {
        var object: JSONObject = ["app": .string(client.app)]
        if !source.isShared { object["client"] = .string(client.client) }
        object["type"] = .string(type)
        if !source.isShared { object["id"] = .string(id) }
        object["attributes"] = parametersObject(attributes)
        if start != nil { object["start"] = true }
        return JSONValue.object(object).serialized
    }

    /// The activity to start, for the payload; `nil` if it is active.
    fileprivate func starting(in environment: APNsEnvironment) -> ActivityContent.Start? {
        start.map {
            (
                type: type, attributes: $0.start.attributes, alert: $0.start.alert,
                channel: $0.start.channels["\(environment)"]
            )
        }
    }
}
