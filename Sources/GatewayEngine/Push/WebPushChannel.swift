import GatewayCore
import GatewayDelivery
import GatewayOperations
import GatewaySigning
import Synchronization
import WidgetModel

/// The push services of browsers: they get the response that a poll would get, encrypted for the
/// subscription, or nothing where that is too long.
final class WebPushChannel: PushChannel {
    /// The time that a service keeps a push for a browser out of reach, seconds: the longest that
    /// all of them accept.
    private static let lifetime = 2_419_200
    /// The lifetime of a token, and the rest of it for which the token is no longer used, seconds.
    private static let (tokenLifetime, tokenRest): (Int64, Int64) = (43_200, 3_600)
    /// The most tokens, and the most hosts, that are kept. Clients choose them.
    private static let keptMax = 1_000

    private struct Origin: Hashable {
        let app: String
        let url: String
    }

    static let service = PushService.webPush

    let accounts: [String: WebPushAccount]
    private let content: WebhookPushes.Content
    private let tokens = Mutex<[Origin: (field: String, expires: Int64)]>([:])
    /// The hosts that have responded. The names of others, which may have no answer for long, are
    /// looked up apart.
    private let known: Mutex<Set<String>>
    private var knownHosts: Set<String> { known.withLock { $0 } }

    init(
        _ accounts: [String: WebPushAccount], _ content: WebhookPushes.Content,
        after former: WebPushChannel?
    ) {
        (self.accounts, self.content) = (accounts, content)
        known = Mutex(former?.knownHosts ?? [])
    }

    func request(
        for order: DuePush, from account: WebPushAccount
    ) async throws(PushReport) -> PushServiceRequest {
        guard case .webPush(let address) = order.address,
            let endpoint = try? WebhookEndpoint(address.endpoint),
            let p256dh = Base64.url.decode(address.p256dh),
            let auth = Base64.url.decode(address.auth)
        else { throw .badToken }
        do throws(SigningError) {
            let isKnown = known.withLock { $0.contains(endpoint.host) }
            let owner = (isKnown ? "webpush " : "webpush new ") + order.client.app
            let token = try authorization(account, endpoint, order.client.app)
            var request = PushServiceRequest(
                to: endpoint,
                fields: [
                    ("authorization", token), ("ttl", String(Self.lifetime)),
                    ("urgency", order.urgency.rawValue),
                    // The last push says what those before it said, too.
                    ("topic", "timeline-reload"),
                ], body: [], owner: owner)
            let answer = try content.answer(order)
            // A client that gets nothing polls.
            guard answer.count <= WebPushMessage.contentBytesMax else { return request }
            request.body = try WebPushMessage.encrypt(answer, p256dh: p256dh, auth: auth)
            request.fields.append((name: "content-encoding", value: "aes128gcm"))
            request.fields.append((name: "content-type", value: "application/octet-stream"))
            return request
        } catch {
            throw error.code == .keyUnsupported ? PushReport.badToken : PushReport.unsigned
        }
    }

    func request(
        after answer: PushServiceAnswer, to request: PushServiceRequest, for order: DuePush,
        from account: WebPushAccount
    ) async throws(PushReport) -> PushServiceRequest? {
        let host = request.endpoint.host
        known.withLock { hosts in
            if hosts.count >= Self.keptMax, !hosts.contains(host) { hosts.removeFirst() }
            hosts.insert(host)
        }
        guard answer.response.status == 413, !request.body.isEmpty else { return nil }
        var bare = request
        bare.body = []
        bare.fields.removeAll { $0.name.hasPrefix("content-") }
        return bare
    }

    func reaction(to answer: PushServiceAnswer) -> (reaction: APNsReaction, reason: String?) {
        let response = answer.response
        return (APNsReaction(toWebPush: response.status, retryAfter: response.retryAfter), nil)
    }

    /// Returns the field that identifies the app, with a token that is made once for each service.
    private func authorization(
        _ account: WebPushAccount, _ endpoint: WebhookEndpoint, _ app: String
    ) throws(SigningError) -> String {
        let now = content.clock.wallSeconds()
        let host = endpoint.address?.bytes.count == 16 ? "[\(endpoint.host)]" : endpoint.host
        let audience = "https://" + host + (endpoint.port == 443 ? "" : ":\(endpoint.port)")
        let origin = Origin(app: app, url: audience)
        if let known = tokens.withLock({ $0[origin] }),
            // A clock that was set back must not make a token valid for more than a day.
            (Self.tokenRest...Self.tokenLifetime).contains(known.expires - now)
        {
            return known.field
        }
        let expires = now + Self.tokenLifetime
        let token = try account.key.vapidToken(
            audience: audience, subject: account.subject, expires: expires)
        let field = "vapid t=\(token),k=\(account.key.applicationServerKey)"
        tokens.withLock {
            if $0.count >= Self.keptMax { $0 = [:] }
            $0[origin] = (field, expires)
        }
        return field
    }
}
