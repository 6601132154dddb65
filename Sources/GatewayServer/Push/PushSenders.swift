import GatewayCore
import GatewayStorage
import WidgetModel

/// Everything that makes pushes, as the configuration asks for it.
struct PushSenders: Sendable {
    private let apns: APNsSender?
    private let webhooks: WebhookPushes?

    /// - Parameter content: What webhooks are told.
    /// - Throws: ``Faults`` when there is no memory.
    init(
        _ configuration: PushConfiguration, _ files: PushFiles, store: SQLiteStore,
        _ content: WebhookPushes.Content
    ) throws(Faults) {
        webhooks =
            configuration.hasWebhooks ? try WebhookPushes(configuration, files, content) : nil
        apns =
            configuration.apps.isEmpty
            ? nil : APNsSender(configuration, files) { .stored(in: store, issuer: $0) }
    }

    /// Who makes a push; `nil` when nobody can.
    func sender(of order: PushOrder) -> (any PushSender)? {
        switch order.address {
        case .stream: nil
        case .apns: apns
        case .webhook: webhooks
        }
    }

    /// All of them.
    var all: [any PushSender] {
        let senders: [(any PushSender)?] = [apns, webhooks]
        return senders.compactMap { $0 }
    }
}
