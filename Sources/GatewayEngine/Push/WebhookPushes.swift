import CurlMulti
import GatewayCore
import GatewayDelivery
import GatewaySigning
import WidgetModel

/// Sends pushes to webhooks: the response that a poll would get, signed per Standard Webhooks 1.0.
package final class WebhookPushes: PushSender {
    /// The content of pushes, and the keys that sign them.
    package struct Content: Sendable {
        /// The notification of stale timelines, as a compact JWS.
        let notification: @Sendable (DuePush) throws(SigningError) -> [UInt8]
        let cursor: @Sendable (UInt64, EpochID) -> String
        /// The keys in use.
        let signer: @Sendable () -> WebhookSigner?
        let clock: GatewayClock
        /// Records the outcome for a push whose content was needed.
        let asked: @Sendable (_ app: String, _ outcome: String) -> Void

        package init(
            notification: @escaping @Sendable (DuePush) throws(SigningError) -> [UInt8],
            cursor: @escaping @Sendable (UInt64, EpochID) -> String,
            signer: @escaping @Sendable () -> WebhookSigner?,
            clock: GatewayClock,
            asked: @escaping @Sendable (_ app: String, _ outcome: String) -> Void
        ) {
            self.notification = notification
            self.cursor = cursor
            self.signer = signer
            self.clock = clock
            self.asked = asked
        }
    }

    private let sender: WebhookSender
    private let content: Content

    init(_ sender: WebhookSender, _ content: Content) {
        (self.sender, self.content) = (sender, content)
    }

    package func send(_ order: DuePush, _ finished: @escaping @Sendable (PushReport) -> Void) {
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
            var report = PushReport(result: .webhook(nil), reference: message.id)
            do throws(CurlError) {
                let response = try await sender.send(message, to: endpoint, signer: signer)
                report.result = .webhook(response)
                report.status = response.status
                report.reason = response.isSuccess ? nil : String(response.status)
            } catch {
                report.reason = error.code.rawValue
                let isOwn = [.closed, .busy, .cancelled, .noMemory].contains(error.code)
                if isOwn { report.result = .notSent }
            }
            finished(report)
        }
    }

    private static func failed(_ reason: String) -> PushReport {
        PushReport(result: .webhook(nil), reason: reason)
    }

    private static func message(
        _ order: DuePush, _ content: Content
    ) throws(SigningError) -> WebhookMessage {
        WebhookMessage(
            id: "msg_" + String(order.message, radix: 16), timestamp: content.clock.wallSeconds(),
            body: try content.answer(order))
    }
}

extension WebhookPushes.Content {
    /// Returns what a poll would be answered.
    func answer(_ order: DuePush) throws(SigningError) -> [UInt8] {
        let notification = try notification(order)
        let body: JSONValue = [
            "cursor": .string(cursor(order.position, order.epoch)),
            "notifications": [.string(String(decoding: notification, as: UTF8.self))],
        ]
        return body.serialized
    }
}
