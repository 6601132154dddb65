import GatewayCore
import GatewayDelivery
import GatewaySigning
import WidgetModel

/// Makes pushes to webhooks: what a poll would answer, signed as Standard Webhooks 1.0 says.
final class WebhookPushes: PushSender {
    /// What a push says, and with what it is signed.
    struct Content: Sendable {
        /// The notification of what is stale, as a compact JWS.
        let notification: @Sendable (PushOrder) throws(SigningError) -> [UInt8]
        /// The text of a cursor.
        let cursor: @Sendable (UInt64, EpochID) -> String
        /// The keys in use.
        let signer: @Sendable () -> WebhookSigner?
        /// Seconds since 1970.
        let wallSeconds: @Sendable () -> Int64
    }

    /// What it was made by.
    struct Terms: Hashable {
        private let ranges: [String]
        private let trust: String?

        init(_ configuration: PushConfiguration) {
            ranges = configuration.webhookRanges
            trust = configuration.webhookTrust
        }
    }

    let terms: Terms
    private let sender: WebhookSender
    private let content: Content

    /// - Throws: ``Faults`` when there is no memory.
    init(
        _ configuration: PushConfiguration, _ files: PushFiles, _ content: Content
    ) throws(Faults) {
        do throws(DeliveryError) {
            sender = try WebhookSender(
                addressGuard: AddressGuard(allowed: files.webhookRanges),
                trust: configuration.webhookTrust.map { .file($0) } ?? .system,
                connectionsMax: configuration.webhookConnectionsMax)
        } catch {
            throw Faults("webhooks.enabled", error.message)
        }
        self.content = content
        terms = Terms(configuration)
    }

    func send(_ order: PushOrder, _ finished: @escaping @Sendable (PushReport) -> Void) {
        guard case .webhook(let url) = order.address, let signer = content.signer() else {
            finished(Self.failed("NotConfigured"))
            return
        }
        let endpoint: WebhookEndpoint
        do throws(WebhookEndpoint.Fault) {
            endpoint = try WebhookEndpoint(url)
        } catch {
            finished(Self.failed("BadURL"))
            return
        }
        Task { [sender, content] in
            let message: WebhookMessage
            do {
                message = try Self.message(order, content)
            } catch {
                finished(Self.failed("NotSigned"))
                return
            }
            let result = await sender.send(message, to: endpoint, signer: signer)
            finished(PushReport(result, message.id))
        }
    }

    func drain() async {
        await sender.drain()
    }

    private static func failed(_ reason: String) -> PushReport {
        PushReport(result: .webhook(.none), outcome: .retry, reason: reason)
    }

    private static func message(
        _ order: PushOrder, _ content: Content
    ) throws(SigningError) -> WebhookMessage {
        let notification = try content.notification(order)
        let body: JSONValue = [
            "cursor": .string(content.cursor(order.position, order.epoch)),
            "notifications": [.string(String(decoding: notification, as: UTF8.self))],
        ]
        return WebhookMessage(
            id: "msg_" + String(order.message, radix: 16), timestamp: content.wallSeconds(),
            body: body.serialized)
    }
}

extension PushReport {
    fileprivate init(_ result: WebhookResult, _ id: String) {
        self.result = .webhook(result.answer)
        reference = id
        if case .status(let status, _) = result.answer { self.status = status }
        switch result.answer {
        case .status(200..<300, _): outcome = .sent
        case .status(410, _): (outcome, reason) = (.disabled, "410")
        case .status(let status, _): (outcome, reason) = (.retry, String(status))
        case .none: (outcome, reason) = (.retry, result.error?.code.rawValue)
        }
    }
}
