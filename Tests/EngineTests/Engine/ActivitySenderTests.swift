import CatalogModel
import CurlMulti
import GatewayDelivery
import GatewayOperations
import GatewaySigning
import GatewayTestSupport
import Synchronization
import Testing
import WidgetModel

@testable import GatewayCore
@testable import GatewayEngine

/// Questions to sources of content: which pushes share an answer, and what becomes of failures.
@Suite(.timeLimit(.minutes(30))) struct ActivitySenderTests {
    private typealias Answer = Result<WebhookSender.Answer, CurlError>

    /// A source whose answers the test gives.
    private final class Source: Sendable {
        private struct State {
            var questions: [(url: String, body: JSONObject, fields: WebhookMessage)] = []
            var waiting: [CheckedContinuation<Answer, Never>] = []
            /// Answers at once.
            var rule: (@Sendable (JSONObject) -> Answer)?
            /// The outcomes that were measured.
            var outcomes: [String] = []
        }

        private let state = Mutex(State())

        var questions: [(url: String, body: JSONObject, fields: WebhookMessage)] {
            state.withLock { $0.questions }
        }
        var outcomes: [String] { state.withLock { $0.outcomes } }

        func measured(_ outcome: String) { state.withLock { $0.outcomes.append(outcome) } }

        func ask(
            _ message: WebhookMessage, _ endpoint: WebhookEndpoint
        ) async throws(CurlError) -> WebhookSender.Answer {
            let body = (try? JSONValue(parsing: message.body))?.objectValue ?? JSONObject()
            let answer: Answer = await withCheckedContinuation { continuation in
                let rule = state.withLock { state in
                    state.questions.append((endpoint.url, body, message))
                    if state.rule == nil { state.waiting.append(continuation) }
                    return state.rule
                }
                if let rule { continuation.resume(returning: rule(body)) }
            }
            return try answer.get()
        }

        /// Answers all questions at once from now on, and those that wait.
        func always(_ rule: @escaping @Sendable (JSONObject) -> Answer) {
            let waiting = state.withLock { state in
                state.rule = rule
                defer { state.waiting = [] }
                return state.waiting
            }
            for one in waiting { one.resume(returning: rule(JSONObject())) }
        }

        /// Waits until so many questions were asked in all.
        func wait(for count: Int) async throws {
            try await eventually("asked") { questions.count >= count }
        }

        /// Answers the oldest question without an answer.
        func answer(_ answer: Answer) {
            state.withLock { $0.waiting.removeFirst() }.resume(returning: answer)
        }

        /// Answers with content that shows a number.
        func show(_ number: Int, _ event: String = "update") {
            answer(ActivitySenderTests.content(number, event))
        }
    }

    private static func says(
        _ status: Int, _ body: String = "", cutBy code: CurlError.Code? = nil,
        retryAfter: Int64? = nil
    ) -> Answer {
        .success(
            (
                status: status, body: Array(body.utf8),
                failure: code.map { CurlError($0, "") }, retryAfter: retryAfter
            ))
    }

    private static func fails(_ code: CurlError.Code) -> Answer { .failure(CurlError(code, "")) }

    private static func content(_ number: Int, _ event: String = "update") -> Answer {
        says(200, #"{"event":"\#(event)","contentState":{"number":\#(number)}}"#)
    }

    private let clock = HeldClock()
    private let source = Source()

    private func contents(
        isSigned: Bool = true, drain: @escaping @Sendable () async -> Void = {}
    ) throws -> ActivityContents {
        let signer = isSigned ? try WebhookSigner([SigningKey()]) : nil
        let services = WebhookPushes.Content(
            notification: { _ in [] }, cursor: { _, _ in "" }, signer: { signer },
            clock: clock.gateway, asked: { [source] _, outcome in source.measured(outcome) })
        return ActivityContents(
            services, drain: drain,
            ask: { [source] message, endpoint, _ async throws(CurlError) in
                try await source.ask(message, endpoint)
            })
    }

    /// Returns a push for a change at a sequence, composed at a position.
    private static func order(
        _ client: String = "phone", id: String = "one", hero: String = "panda",
        isShared: Bool = false, url: String = "https://a.test/content",
        changedAt sequence: UInt64 = 5, position: UInt64 = 5
    ) -> DuePush {
        DuePush(
            number: 1, client: ClientKey(app: "app", client: client), sorts: [.activity(id: id)],
            cause: .noStream,
            address: .apns(.init(pushType: "liveactivity", token: "aa")), environment: .production,
            mayTryOtherEnvironment: false, content: .everything(at: sequence), position: position,
            urgency: .normal, failures: 0, registeredAt: 0, message: 0,
            activity: DuePush.Activity(
                type: "Battle", id: id, attributes: ["hero": .single(hero)],
                source: ContentSource(url: url, isShared: isShared), priority: 10, timestamp: 77))
    }

    /// Begins to ask for the content of a push; returns the number that it shows.
    private func begin(
        _ order: DuePush, _ contents: ActivityContents
    ) -> Task<Result<Int64, PushReport>, Never> {
        Task {
            do throws(PushReport) {
                guard let activity = order.activity else { return .success(-1) }
                let content = try await contents.content(of: activity, for: order).content
                return .success(content?.contentState["number"]?.integerValue ?? -1)
            } catch {
                return .failure(error)
            }
        }
    }

    /// Asks for the content of a push, and answers; returns the number that it shows.
    private func ask(
        _ order: DuePush, _ contents: ActivityContents, shows number: Int
    ) async throws -> Int64 {
        let count = source.questions.count + 1
        let task = begin(order, contents)
        try await source.wait(for: count)
        source.show(number)
        return try await task.value.get()
    }

    private func failure(_ task: Task<Result<Int64, PushReport>, Never>) async -> PushResult? {
        if case .failure(let report) = await task.value { report.result } else { nil }
    }

    // MARK: What is asked

    @Test func `a question names the activity, and one for all of them names none`() async throws {
        let contents = try contents()
        #expect(try await ask(Self.order(), contents, shows: 1) == 1)
        #expect(try await ask(Self.order(isShared: true), contents, shows: 2) == 2)
        let questions = source.questions
        #expect(
            questions.map(\.body) == [
                [
                    "app": "app", "client": "phone", "type": "Battle", "id": "one",
                    "attributes": ["hero": "panda"],
                ], ["app": "app", "type": "Battle", "attributes": ["hero": "panda"]],
            ])
        #expect(questions[0].fields.id != questions[1].fields.id)
        #expect(questions[0].fields.timestamp == clock.wall / 1_000)
        #expect(questions.map(\.url) == Array(repeating: "https://a.test/content", count: 2))
        // Names of one app do not hold up those of another.
        #expect(questions.map(\.fields.app) == ["app", "app"])
    }

    // MARK: Who shares an answer

    @Test func `pushes with one question wait for one answer, and all of them get it`()
        async throws
    {
        let contents = try contents()
        let first = begin(Self.order("phone", isShared: true), contents)
        try await source.wait(for: 1)
        let others = ["tablet", "watch"].map {
            begin(Self.order($0, id: $0, isShared: true), contents)
        }
        // Other attributes are another question, and so is another source.
        let other = begin(Self.order(hero: "bear", isShared: true), contents)
        try await source.wait(for: 2)
        let moved = begin(Self.order(isShared: true, url: "https://b.test/content"), contents)
        try await source.wait(for: 3)
        for number in 1...3 { source.show(number) }
        for task in [first] + others { #expect(try await task.value.get() == 1) }
        #expect(try await other.value.get() == 2)
        #expect(try await moved.value.get() == 3)
        #expect(source.questions.count == 3)
        #expect(source.outcomes.sorted() == ["asked", "asked", "asked", "kept", "kept"])
    }

    @Test func `what was answered for one client is never pushed to another`() async throws {
        let contents = try contents()
        let first = begin(Self.order("phone"), contents)
        try await source.wait(for: 1)
        let other = begin(Self.order("tablet"), contents)
        try await source.wait(for: 2)
        source.show(1)
        source.show(2)
        #expect(try await first.value.get() == 1)
        #expect(try await other.value.get() == 2)
        // Nor for another activity of the same client.
        #expect(try await ask(Self.order("phone", id: "two"), contents, shows: 3) == 3)
    }

    @Test func `an answer serves no push of a later change, nor for longer than a minute`()
        async throws
    {
        let contents = try contents()
        let first = Self.order(changedAt: 5, position: 7)
        #expect(try await ask(first, contents, shows: 1) == 1)
        clock.advance(to: clock.now + 60_000)
        // It was asked when the log had reached 7.
        for sequence in [5, 7] as [UInt64] {
            let again = begin(Self.order(changedAt: sequence, position: 9), contents)
            #expect(try await again.value.get() == 1)
        }
        let later = Self.order(changedAt: 8, position: 9)
        #expect(try await ask(later, contents, shows: 2) == 2)
        clock.advance(to: clock.now + 60_001)
        #expect(try await ask(later, contents, shows: 3) == 3)
    }

    @Test func `an older answer that comes late does not replace a newer one`() async throws {
        let contents = try contents()
        let older = begin(Self.order(changedAt: 5, position: 5), contents)
        try await source.wait(for: 1)
        let newer = begin(Self.order(changedAt: 6, position: 6), contents)
        try await source.wait(for: 2)
        let joined = begin(Self.order(changedAt: 5, position: 6), contents)
        source.show(1)
        #expect(try await older.value.get() == 1)
        source.show(2)
        #expect(try await newer.value.get() == 2)
        #expect(try await joined.value.get() == 2)
        let next = begin(Self.order(changedAt: 6, position: 6), contents)
        #expect(try await next.value.get() == 2)
    }

    @Test func `of an app 256 answers are kept, the newest`() async throws {
        let contents = try contents()
        source.always { Self.content(Int($0["id"]?.stringValue ?? "") ?? -1) }
        for number in 0..<258 {
            let task = begin(Self.order(id: "\(number)"), contents)
            #expect(try await task.value.get() == Int64(number))
            clock.advance(to: clock.now + 1)
        }
        #expect(source.questions.count == 258)
        #expect(try await begin(Self.order(id: "2"), contents).value.get() == 2)
        #expect(source.questions.count == 258)
        #expect(try await begin(Self.order(id: "1"), contents).value.get() == 1)
        #expect(source.questions.count == 259)
    }

    // MARK: Failures

    @Test func `all that wait for an answer get its failure, and the next push asks anew`()
        async throws
    {
        let contents = try contents()
        let first = begin(Self.order(isShared: true), contents)
        try await source.wait(for: 1)
        let joined = begin(Self.order("tablet", isShared: true), contents)
        source.always { _ in Self.says(503, retryAfter: 9) }
        for task in [first, joined] {
            #expect(await failure(task) == .content(.failed(.status, retryAfter: 9)))
        }
        source.always { _ in Self.content(1) }
        let again = begin(Self.order(isShared: true), contents)
        #expect(try await again.value.get() == 1)
        #expect(Set(source.outcomes) == ["status", "asked"])
    }

    @Test func `each answer, or its absence, has its reason`() async throws {
        let contents = try contents()
        let long = String(repeating: " ", count: ActivityContent.bytesMax + 1)
        let cases: [(Answer, ContentFailure)] = [
            (Self.says(200), .invalid), (Self.says(200, "{}"), .invalid),
            (Self.says(200, #"{"event":"#, cutBy: .connectionEnded), .unreachable),
            (Self.says(200, #"{"event":"#, cutBy: .timedOut), .timedOut),
            (Self.says(200, long, cutBy: .tooLarge), .tooLarge), (Self.says(302), .status),
            (Self.says(500, long, cutBy: .tooLarge), .status),
            (Self.fails(.unresolved), .unreachable), (Self.fails(.notTrusted), .unreachable),
            (Self.fails(.timedOut), .timedOut), (Self.fails(.addressNotAllowed), .notAllowed),
            (Self.fails(.badRequest), .notSigned),
        ]
        for (place, one) in cases.enumerated() {
            let task = begin(Self.order(), contents)
            try await source.wait(for: place + 1)
            source.answer(one.0)
            #expect(await failure(task) == .content(.failed(one.1)))
        }
        #expect(source.outcomes == cases.map { $0.1.rawValue })
        let unsigned = begin(Self.order(), try self.contents(isSigned: false))
        let report = await #expect(throws: PushReport.self) { try await unsigned.value.get() }
        #expect(report?.result == .content(.failed(.notSigned)))
        #expect(report?.outcome == .content && report?.reason == "not-signed")
    }

    @Test func `to have nothing to say is an answer, and not to ask is none`() async throws {
        let contents = try contents()
        let nothing = begin(Self.order(), contents)
        try await source.wait(for: 1)
        source.answer(Self.says(204))
        #expect(try await nothing.value.get() == -1)
        #expect(try await begin(Self.order(), contents).value.get() == -1)
        let closed = begin(Self.order(id: "two"), contents)
        try await source.wait(for: 2)
        source.answer(Self.fails(.closed))
        #expect(await failure(closed) == .notSent)
        #expect(source.outcomes == ["nothing", "kept"])
    }

    // MARK: Pushes

    @Test func `a push has the content, and is not sent once another gateway leads`() async throws {
        let pushes = RecordingSender()
        let contents = try contents()
        func send(mayPush: Bool) async throws -> PushReport {
            let before = source.questions.count
            let sender = ActivitySender(
                contents: contents, asked: { _ in mayPush }, apns: { pushes })
            async let report: PushReport = withCheckedContinuation { continuation in
                sender.send(
                    Self.order(changedAt: UInt64(6 + before), position: UInt64(6 + before))
                ) { continuation.resume(returning: $0) }
            }
            try await source.wait(for: before + 1)
            source.show(4, "end")
            return await report
        }
        let sent = try await send(mayPush: true)
        #expect(sent.ends && sent.outcome == .sent)
        let payload = try #require(pushes.orders.first?.activity?.payload)
        let aps = try JSONValue(parsing: payload).objectValue?["aps"]?.objectValue
        #expect(aps?["timestamp"] == 77 && aps?["event"] == "end")
        #expect(aps?["content-state"] == ["number": 4])
        let kept = try await send(mayPush: false)
        #expect(kept.result == .notSent && pushes.orders.count == 1)
    }

    @Test func `nothing is pushed of an activity that the catalog does not declare`() async throws {
        let configuration = PushConfiguration()
        let sender = APNsSender(
            configuration, try PushFiles(configuration),
            share: { _ in ProviderTokenShare(read: { nil }, replace: { _, new in new }) })
        var order = Self.order()
        order.activity = nil
        let report: PushReport = await withCheckedContinuation { continuation in
            sender.send(order) { continuation.resume(returning: $0) }
        }
        #expect(report.result == .content(.nothing) && report.alert == nil)
    }

    @Test func `a drain waits for the pushes whose content has just arrived`() async throws {
        let pushes = RecordingSender()
        let contents = try contents(drain: { [source] in source.show(1, "end") })
        let ends = Mutex(0)
        let sender = ActivitySender(contents: contents, asked: { _ in true }, apns: { pushes })
        sender.send(Self.order()) { report in ends.withLock { $0 += report.ends ? 1 : 0 } }
        try await source.wait(for: 1)
        await contents.drain()
        #expect(pushes.orders.count == 1 && ends.withLock { $0 } == 1)
    }

    // MARK: Starts

    /// Returns a push that starts an activity.
    private func starting(_ changes: JSONObject = [:], expiresIn milliseconds: Int64 = 1) throws
        -> DuePush
    {
        let document: JSONValue = [
            "id": "battle-17", "type": "Battle", "attribute": "account:42",
            "attributes": ["hero": "panda", "place": ["x": 1]], "alert": ["title": "Battle"],
        ]
        var start = try ActivityStart(
            document.merging(patch: .object(changes)), limits: Limits())
        if start.channel != nil { start.channels = ["production": "AAAA", "sandbox": "BBBB"] }
        var order = Self.order(id: start.id)
        order.activity?.start = RecentStart(
            sequence: 5, expiresAt: clock.wall + milliseconds, start: start)
        return order
    }

    private func report(
        of order: DuePush, to pushes: RecordingSender, _ contents: ActivityContents? = nil
    ) async throws -> PushReport {
        let sender = ActivitySender(
            contents: try contents ?? self.contents(),
            asked: { [source] isNew in
                source.measured(isNew ? "new" : "known")
                return true
            }, apns: { pushes })
        return await withCheckedContinuation { continuation in
            sender.send(order) { continuation.resume(returning: $0) }
        }
    }

    @Test func `a start asks for content of its own, and carries all that begins the activity`()
        async throws
    {
        source.always { _ in Self.content(1) }
        for channel in [nil, "match-7"] as [String?] {
            let pushes = RecordingSender()
            let changes: JSONObject = channel.map { ["channel": .string($0)] } ?? [:]
            let order = try starting(changes)
            #expect(try await report(of: order, to: pushes).outcome == .sent)
            let payload = try #require(pushes.orders.first?.activity?.payload)
            let text = String(decoding: payload, as: UTF8.self)
            #expect(text.contains(#""attributes":{"hero":"panda","place":{"x":1}}"#))
            let updates =
                channel == nil ? #""input-push-token":1"# : #""input-push-channel":"AAAA""#
            #expect(text.contains(updates))
        }
        #expect(
            source.questions.map(\.body).first == [
                "app": "app", "client": "phone", "type": "Battle", "id": "battle-17",
                "attributes": ["hero": "panda"], "start": true,
            ])
    }

    @Test func `whatever its source answers, that is said of each push, and whether it is new`()
        async throws
    {
        let pushes = RecordingSender()
        let contents = try contents()
        source.always { _ in Self.says(204) }
        for _ in 0..<2 {
            let skipped = try await report(of: Self.order(), to: pushes, contents)
            #expect(skipped.result == .content(.nothing))
        }
        #expect(source.outcomes == ["nothing", "new", "kept", "known"])
        // Content that is too large only with what the start says.
        let text = String(repeating: " ", count: 2_500)
        source.always { _ in
            Self.says(200, #"{"event":"update","contentState":{"text":"\#(text)"}}"#)
        }
        let order = try starting(["attributes": ["hero": "panda", "text": .string(text)]])
        let large = try await report(of: order, to: pushes, contents)
        #expect(large.result == .content(.failed(.tooLarge)) && source.outcomes.last == "new")
        #expect(pushes.orders.isEmpty)
    }

    @Test func `a start that is over is neither asked for nor pushed`() async throws {
        let pushes = RecordingSender()
        source.always { _ in Self.content(1, "end") }
        let expired = try await report(of: starting(expiresIn: 0), to: pushes)
        #expect(expired.result == .content(.expired) && expired.outcome == .skipped)
        #expect(source.questions.isEmpty)
        let ended = try await report(of: starting(), to: pushes)
        #expect(ended.result == .content(.nothing) && !ended.ends)
        #expect(source.questions.count == 1 && pushes.orders.isEmpty)
    }
}
