import CurlMulti
import GatewayCore
import GatewayDelivery
import GatewayOperations
import GatewaySigning
import Synchronization
import WidgetModel

/// Sends pushes to the push services of browsers: the response that a poll would get, encrypted for
/// the subscription, or nothing where that is too long.
final class WebPushSender: PushSender {
    /// How long a service keeps a push for a browser out of reach, seconds: the longest time that
    /// all of them accept.
    private static let lifetime = 2_419_200
    /// How long a token is valid, and the rest of that for which it is no longer used, seconds.
    private static let (tokenLifetime, tokenRest): (Int64, Int64) = (43_200, 3_600)
    /// The most tokens that are kept. Clients choose the origins.
    private static let tokensMax = 1_000

    private struct Origin: Hashable {
        let app: String
        let url: String
    }

    /// The identities of apps at the services.
    let accounts: [String: WebPushAccount]
    private let sender: WebhookSender
    private let content: WebhookPushes.Content
    private let tokens = Mutex<[Origin: (field: String, expires: Int64)]>([:])

    init(
        _ accounts: [String: WebPushAccount], _ sender: WebhookSender,
        _ content: WebhookPushes.Content
    ) {
        (self.accounts, self.sender, self.content) = (accounts, sender, content)
    }

    /// The apps that have another account than before.
    func mended(since former: WebPushSender?) -> Set<PushScheduler.AppService> {
        let changed = accounts.filter { former?.accounts[$0.key] != $0.value }
        return Set(changed.keys.map { PushScheduler.AppService(app: $0, .webPush) })
    }

    func send(_ order: DuePush, _ finished: @escaping @Sendable (PushReport) -> Void) {
        Task { finished(await report(order)) }
    }

    private func report(_ order: DuePush) async -> PushReport {
        guard case .webPush(let address) = order.address,
            let account = accounts[order.client.app]
        else {
            return PushReport(
                result: .service(.stop(.credential)), reason: "NotConfigured",
                alert: .credentialRefused)
        }
        guard let endpoint = try? WebhookEndpoint(address.endpoint),
            let p256dh = Base64.url.decode(address.p256dh),
            let auth = Base64.url.decode(address.auth)
        else { return PushReport(result: .service(.dropAddress), reason: "BadToken") }
        let request: PushServiceRequest
        do throws(SigningError) {
            let answer = try content.answer(order)
            // A client that gets nothing polls.
            let body =
                answer.count > WebPushMessage.contentBytesMax
                ? [] : try WebPushMessage.encrypt(answer, p256dh: p256dh, auth: auth)
            request = PushServiceRequest(
                to: endpoint,
                fields: [
                    ("authorization", try authorization(account, endpoint, order.client.app)),
                    ("ttl", String(Self.lifetime)), ("urgency", order.urgency.rawValue),
                    // The last push says what those before it said, too.
                    ("topic", "timeline-reload"),
                ], body: body, owner: "webpush " + order.client.app)
        } catch {
            guard error.code == .keyUnsupported else {
                return PushReport(result: .service(.retry(.device)), reason: "NotSigned")
            }
            return PushReport(result: .service(.dropAddress), reason: "BadToken")
        }
        do throws(CurlError) {
            return try await report(of: request)
        } catch {
            return PushReport(error)
        }
    }

    private func report(of request: PushServiceRequest) async throws(CurlError) -> PushReport {
        var request = request
        let now = content.clock.wallSeconds()
        if !request.body.isEmpty {
            request.fields.append((name: "content-encoding", value: "aes128gcm"))
            request.fields.append((name: "content-type", value: "application/octet-stream"))
        }
        var response = try await sender.send(request, now: now).response
        if response.status == 413, !request.body.isEmpty {
            request.body = []
            request.fields.removeLast(2)
            response = try await sender.send(request, now: now).response
        }
        return PushReport(
            response,
            APNsReaction(toWebPush: response.status, retryAfter: response.retryAfter))
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
            if $0.count >= Self.tokensMax { $0 = [:] }
            $0[origin] = (field, expires)
        }
        return field
    }
}

extension PushReport {
    /// Reports the response of a push service.
    init(_ response: WebhookResponse, _ reaction: APNsReaction, reason: String? = nil) {
        let isSuccess = response.isSuccess
        self.init(
            result: .service(reaction.verdict, isMultiplexed: response.isMultiplexed),
            status: response.status,
            reason: isSuccess ? nil : reason ?? String(response.status), alert: reaction.alert)
    }

    /// Reports that a push service did not respond.
    init(_ error: CurlError) {
        switch error.code {
        case .closed, .busy, .cancelled, .noMemory:
            self.init(result: .notSent, reason: error.code.rawValue)
        case .connectionEnded, .streamReset, .timedOut, .silent, .tooLarge:
            self.init(
                result: .service(.retry(.device), mayHaveArrived: true),
                reason: error.code.rawValue)
        case .badRequest, .unresolved, .addressNotAllowed, .unreachable, .notTrusted, .notSent,
            .notProcessed:
            self.init(result: .service(.retry(.device)), reason: error.code.rawValue)
        }
    }
}
