import Foundation
import GatewayCore
import GatewayStorage
import Synchronization
import WidgetModel

/// Everything that makes pushes, as the configuration in force asks for it.
final class PushSenders: Sendable {
    /// What makes pushes under one configuration.
    struct Generation: Sendable {
        fileprivate let apns: APNsSender?
        fileprivate let webhooks: WebhookPushes?
        fileprivate let certificateEnds: [String: Date]
        /// Where pushes go as another account, or in another form, than in the generation before.
        let mended: Set<PushDesk.Place>
    }

    private struct State {
        var current: Generation
        /// Generations that end what they have under way.
        var retiring: [Int: Task<Void, Never>] = [:]
        var retired = 0
    }

    private let state: Mutex<State>
    private let store: SQLiteStore
    private let content: WebhookPushes.Content

    /// - Parameter content: What webhooks are told.
    /// - Throws: ``Faults`` when there is no memory.
    init(
        _ configuration: PushConfiguration, _ files: PushFiles, store: SQLiteStore,
        _ content: WebhookPushes.Content
    ) throws(Faults) {
        self.store = store
        self.content = content
        state = Mutex(
            State(current: try Self.generation(configuration, files, after: nil, store, content)))
    }

    /// What would make pushes under another configuration: where nothing about them is new, by the
    /// connections there are.
    ///
    /// - Throws: ``Faults`` when there is no memory.
    func next(
        _ configuration: PushConfiguration, _ files: PushFiles
    ) throws(Faults) -> Generation {
        let current = state.withLock { $0.current }
        return try Self.generation(configuration, files, after: current, store, content)
    }

    private static func generation(
        _ configuration: PushConfiguration, _ files: PushFiles, after former: Generation?,
        _ store: SQLiteStore, _ content: WebhookPushes.Content
    ) throws(Faults) -> Generation {
        var webhooks: WebhookPushes?
        if configuration.hasWebhooks {
            webhooks = former?.webhooks
            if webhooks?.terms != WebhookPushes.Terms(configuration) {
                webhooks = try WebhookPushes(configuration, files, content)
            }
        }
        let apns =
            configuration.apps.isEmpty
            ? nil
            : APNsSender(configuration, files, after: former?.apns) {
                .stored(in: store, issuer: $0)
            }
        return Generation(
            apns: apns, webhooks: webhooks, certificateEnds: files.certificateEnds,
            mended: apns?.mended(since: former?.apns) ?? [])
    }

    /// Has pushes made by another generation from now on. What is under way by connections that it
    /// has no use for ends there, each push at its deadline at the latest; then they are closed.
    ///
    /// - Parameter resumes: Whether what APNs refused is sent again.
    func use(_ next: Generation, resumes: Bool) {
        state.withLock { state in
            let former = state.current
            state.current = next
            state.retired += 1
            let number = state.retired
            state.retiring[number] = Task { [weak self] in
                await former.apns?.drain(except: next.apns)
                if former.webhooks !== next.webhooks { await former.webhooks?.drain() }
                self?.ended(number)
            }
        }
        if resumes { next.apns?.resume() }
    }

    private func ended(_ number: Int) {
        state.withLock { $0.retiring[number] = nil }
    }

    /// When the certificates expire by which APNs knows apps.
    var certificateEnds: [String: Date] { state.withLock { $0.current.certificateEnds } }

    /// How many generations have pushes under way, beside the one in force.
    var retiringCount: Int { state.withLock { $0.retiring.count } }

    /// Who makes a push; `nil` when nobody can.
    func sender(of order: PushOrder) -> (any PushSender)? {
        let current = state.withLock { $0.current }
        switch order.address {
        case .stream: return nil
        case .apns: return current.apns
        case .webhook: return current.webhooks
        }
    }

    /// Returns when what is under way has ended, at the latest at the deadline of each push.
    func drain() async {
        let (current, retiring) = state.withLock { ($0.current, $0.retiring) }
        await current.apns?.drain()
        await current.webhooks?.drain()
        for task in retiring.values { await task.value }
    }
}
