import GatewayDelivery
import GatewaySigning
import GatewayTestSupport
import Testing
import WidgetModel

@testable import GatewayCore
@testable import GatewayEngine
@testable import GatewayOperations

/// What is sent to the push services of browsers and to FCM, without them.
@Suite struct PushChannelTests {
    private let clock = HeldClock()

    private var content: WebhookPushes.Content {
        WebhookPushes.Content(
            notification: { _ in [] }, cursor: { _, _ in "" }, signer: { nil },
            clock: clock.gateway, asked: { _, _ in })
    }

    /// An account whose token endpoint is an address that no request is made to.
    private func account() throws -> FCMAccount {
        FCMAccount(
            project: "my-project", email: "a@b", keyID: "1", key: try ServiceAccountKey(),
            tokens: try WebhookEndpoint("https://10.0.0.1/token"))
    }

    private func order(_ address: DeliveryAddress) -> DuePush {
        DuePush(
            number: 1, client: ClientKey(app: "app", client: "phone"), sorts: [.timelines],
            cause: .noStream, address: address, environment: .production,
            mayTryOtherEnvironment: false, content: .everything(at: 5), position: 5,
            urgency: .normal, failures: 0, registeredAt: 0, message: 0)
    }

    private func answer(_ status: Int, _ body: String = "") -> PushServiceAnswer {
        (response: .status(status), body: Array(body.utf8))
    }

    @Test func `what is too long for a browser's service is sent bare, and its host is known`()
        async throws
    {
        let key = try SigningKey(generating: .es256)
        let account = WebPushAccount(key: key, subject: "mailto:a@b")
        let channel = WebPushChannel(["app": account], content, after: nil)
        let order = order(
            .webPush(
                .init(
                    endpoint: "https://push.example/1", p256dh: key.applicationServerKey,
                    auth: "AAAAAAAAAAAAAAAAAAAAAA")))
        let request = try await channel.request(for: order, from: account)
        #expect(request.owner == "webpush new app" && !request.body.isEmpty)
        let next = try await channel.request(
            after: answer(413), to: request, for: order, from: account)
        let bare = try #require(next)
        #expect(bare.body.isEmpty)
        #expect(bare.fields.map { $0.name } == ["authorization", "ttl", "urgency", "topic"])
        let last = try await channel.request(
            after: answer(413), to: bare, for: order, from: account)
        #expect(last == nil)
        let later = WebPushChannel(["app": account], content, after: channel)
        #expect(try await later.request(for: order, from: account).owner == "webpush app")
    }

    @Test func `what FCM rejects as invalid is sent once more without content`() async throws {
        let account = try account()
        let sender = try WebhookSender(addressGuard: AddressGuard())
        let channel = FCMChannel(
            ["app": account], at: "https://fcm.example", sender, content, after: nil)
        let order = order(.fcm(token: "t"))
        let request = PushServiceRequest(
            to: try WebhookEndpoint("https://fcm.example/"), fields: [("authorization", "x")],
            body: [1], owner: "fcm")
        let invalid = answer(400, #"{"error": {"message": "Invalid value"}}"#)
        let next = try await channel.request(
            after: invalid, to: request, for: order, from: account)
        let bare = try #require(next)
        let message = try JSONValue(parsing: bare.body).objectValue?["message"]?.objectValue
        #expect(message?["data"] == ["timeline": ""] && message?["token"] == "t")
        #expect(bare.fields.map { $0.value } == ["x"])
        let last = try await channel.request(after: invalid, to: bare, for: order, from: account)
        #expect(last == nil)
        let token = answer(400, #"{"error": {"message": "The registration token is not valid"}}"#)
        let none = try await channel.request(after: token, to: request, for: order, from: account)
        #expect(none == nil)
        await sender.drain()
    }

    @Test func `a token endpoint that fails is not asked again for each push`() async throws {
        let sender = try WebhookSender(addressGuard: AddressGuard())
        let tokens = FCMTokens(try account(), sender, clock.gateway)
        func result() async -> PushResult? {
            switch await tokens.field(rejected: nil) {
            case .success: nil
            case .failure(let report): report.result
            }
        }
        let waits: [APNsWait] = [.connection, .shared(1), .connection, .shared(2)]
        for (place, wait) in waits.enumerated() {
            if place == 2 { clock.advance(to: clock.now + 1_000) }
            let found = await result()
            #expect(found == PushResult.service(.retry(wait)))
        }
        await sender.drain()
    }
}
