import CurlMulti
import GatewayCore
import GatewayDelivery
import GatewayOperations
import GatewaySigning
import WidgetModel

/// Firebase Cloud Messaging (HTTP v1): data messages with the response that a poll would get, or
/// with none where that is too long.
final class FCMChannel: PushChannel {
    /// The longest data, bytes: keys and values.
    private static let dataBytesMax = 4_096
    /// The key of the data, whose value is the response to a poll.
    private static let key = "timeline"
    /// The time that FCM keeps a push for a device out of reach: the longest that it accepts.
    private static let lifetime = "2419200s"

    static let service = PushService.fcm

    let accounts: [String: FCMAccount]
    private let content: WebhookPushes.Content
    private let origin: String
    /// The access tokens, by app.
    private let tokens: [String: FCMTokens]

    /// - Parameters:
    ///   - origin: The URL of FCM, without a path.
    ///   - former: The previous channel, whose tokens are used while the accounts are the same.
    init(
        _ accounts: [String: FCMAccount], at origin: String, _ sender: WebhookSender,
        _ content: WebhookPushes.Content, after former: FCMChannel?
    ) {
        (self.accounts, self.origin, self.content) = (accounts, origin, content)
        var tokens: [String: FCMTokens] = [:]
        for (app, account) in accounts {
            let known = former?.tokens[app].flatMap {
                $0.account == account && $0.sender === sender ? $0 : nil
            }
            tokens[app] = known ?? FCMTokens(account, sender, content.clock)
        }
        self.tokens = tokens
    }

    func request(
        for order: DuePush, from account: FCMAccount
    ) async throws(PushReport) -> PushServiceRequest {
        let url = origin + "/v1/projects/\(account.project)/messages:send"
        guard let endpoint = try? WebhookEndpoint(url) else { throw .unsigned }
        let field = try await authorization(order.client.app, rejected: nil)
        let answer: [UInt8]
        do throws(SigningError) {
            answer = try content.answer(order)
        } catch {
            throw .unsigned
        }
        let isShort = Self.key.utf8.count + answer.count <= Self.dataBytesMax
        return PushServiceRequest(
            to: endpoint,
            fields: [("content-type", "application/json"), ("authorization", field)],
            body: try Self.body(isShort ? answer : [], for: order), owner: "fcm")
    }

    /// Returns a message with the response to a poll. A client that gets an empty one polls.
    private static func body(
        _ answer: [UInt8], for order: DuePush
    ) throws(PushReport) -> [UInt8] {
        guard case .fcm(let token) = order.address else { throw .badToken }
        let message: JSONValue = [
            "token": .string(token),
            "data": [key: .string(String(decoding: answer, as: UTF8.self))],
            "android": [
                // The last push says what those before it said, too.
                "collapse_key": "timeline-reload",
                "priority": .string(order.urgency == .high ? "HIGH" : "NORMAL"),
                "ttl": .string(lifetime),
            ],
        ]
        let body: JSONValue = ["message": message]
        return body.serialized
    }

    func request(
        after answer: PushServiceAnswer, to request: PushServiceRequest, for order: DuePush,
        from account: FCMAccount
    ) async throws(PushReport) -> PushServiceRequest? {
        let error = FCMError(body: answer.body)
        var again = request
        switch answer.response.status {
        case 400 where !error.isOfToken:
            // The content may be what FCM rejects.
            again.body = try Self.body([], for: order)
            return again.body == request.body ? nil : again
        case 401 where error.code == nil:
            let name = "authorization"
            let rejected = request.fields.first { $0.name == name }?.value
            let field = try await authorization(order.client.app, rejected: rejected)
            again.fields.removeAll { $0.name == name }
            again.fields.append((name: name, value: field))
            return again
        default: return nil
        }
    }

    func reaction(to answer: PushServiceAnswer) -> (reaction: APNsReaction, reason: String?) {
        let (response, error) = (answer.response, FCMError(body: answer.body))
        return (
            APNsReaction(toFCM: response.status, error, retryAfter: response.retryAfter),
            error.reason
        )
    }

    private func authorization(
        _ app: String, rejected: String?
    ) async throws(PushReport) -> String {
        guard let tokens = tokens[app] else { throw .unsigned }
        switch await tokens.field(rejected: rejected) {
        case .success(let field): return field
        case .failure(let report): throw report
        }
    }
}

/// The access tokens of one service account: one at a time, for all pushes (RFC 7523).
actor FCMTokens {
    private static let scope = "https://www.googleapis.com/auth/firebase.messaging"
    private static let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    /// The lifetime of an assertion, and the rest of a token's at which it is replaced, seconds.
    private static let (assertionLifetime, rest): (Int64, Int64) = (3_600, 300)
    /// The longest wait for the token endpoint that is granted it, ms.
    private static let longestWait: Int64 = 900_000

    private struct Token {
        let field: String
        /// The time at which it is replaced, seconds since 1970.
        let until: Int64
    }

    nonisolated let account: FCMAccount
    nonisolated let sender: WebhookSender
    private let clock: GatewayClock
    private var current: Token?
    /// The request for the next token, which all pushes wait for.
    private var asking: Task<Result<String, PushReport>, Never>?
    private var backoff = Backoff(first: 1_000, longest: 60_000, jitter: .quarterMore)
    /// The report on the last request if it failed, and when the next may be made, monotonic ms.
    private var failure: (report: PushReport, until: Int64)?

    init(_ account: FCMAccount, _ sender: WebhookSender, _ clock: GatewayClock) {
        (self.account, self.sender, self.clock) = (account, sender, clock)
    }

    /// Returns the field `authorization` with a token that is valid for some minutes at least.
    ///
    /// - Parameter rejected: The field that FCM rejected, which is not used again.
    func field(rejected: String?) async -> Result<String, PushReport> {
        let now = clock.wallSeconds()
        // A clock that was set back must not keep a token in use.
        if let current, current.field != rejected,
            (1...Self.assertionLifetime).contains(current.until - now)
        {
            return .success(current.field)
        }
        if var failure, case let left = failure.until - clock.now(), left > 0 {
            // Without an attempt for each of the pushes.
            failure.report.result = .service(.retry(.shared((left + 999) / 1_000)))
            return .failure(failure.report)
        }
        let task: Task<Result<String, PushReport>, Never>
        if let asking {
            task = asking
        } else {
            task = Task { await self.next() }
            self.asking = task
        }
        return await task.value
    }

    private func next() async -> Result<String, PushReport> {
        let answer = await request()
        asking = nil
        switch answer {
        case .success:
            backoff.succeeded()
            failure = nil
        case .failure(let report):
            // A stop concerns all pushes of the app.
            guard case .service(.retry(let wait), _, _) = report.result else { break }
            var left = backoff.failed(random: 0)
            if case .requested(let seconds) = wait {
                left = max(left, min(seconds * 1_000, Self.longestWait))
            }
            failure = (report, clock.now() + left)
        }
        return answer
    }

    private func request() async -> Result<String, PushReport> {
        let now = clock.wallSeconds()
        let claims: JSONValue = [
            "iss": .string(account.email), "scope": .string(Self.scope),
            "aud": .string(account.tokens.url), "iat": .integer(now),
            "exp": .integer(now + Self.assertionLifetime),
        ]
        guard let assertion = try? account.key.assertion(claims, kid: account.keyID) else {
            return .failure(.unsigned)
        }
        // Neither has a character that a form would escape, but the colons.
        let grant = Self.grant.split(separator: ":").joined(separator: "%3A")
        let request = PushServiceRequest(
            to: account.tokens, fields: [("content-type", "application/x-www-form-urlencoded")],
            body: Array("grant_type=\(grant)&assertion=\(assertion)".utf8), owner: "fcm")
        let answer: PushServiceAnswer
        do throws(CurlError) {
            answer = try await sender.send(request, now: now)
        } catch {
            var report = PushReport(error)
            // No push was sent that might have arrived.
            if report.result != .notSent {
                report.result = .service(.retry(.connection))
                report.reason = "token-" + error.code.rawValue
            }
            return .failure(report)
        }
        let members = try? JSONValue(parsing: answer.body).objectValue
        guard answer.response.isSuccess, let token = members?["access_token"]?.stringValue,
            let lifetime = members?["expires_in"]?.integerValue
        else { return .failure(Self.report(answer)) }
        let field = "Bearer " + token
        current = Token(
            field: field, until: now + min(max(0, lifetime), Self.assertionLifetime) - Self.rest)
        return .success(field)
    }

    /// Returns the report on a push without a token.
    private static func report(_ answer: PushServiceAnswer) -> PushReport {
        let response = answer.response
        let reaction = APNsReaction(
            toTokenRequest: response.status, retryAfter: response.retryAfter)
        return PushReport(
            result: .service(reaction.verdict), status: response.status,
            reason: FCMError(body: answer.body).reason ?? String(response.status),
            alert: reaction.alert)
    }
}
