import CurlMulti
import Foundation
import GatewayCore
import GatewayDelivery
import GatewayOperations
import GatewaySigning
import Synchronization
import WidgetModel

/// All push senders of the configuration in force.
package final class PushSenders: Sendable {
    package struct Generation: Sendable {
        fileprivate let apns: APNsSender?
        fileprivate let webhooks: WebhookPushes?
        fileprivate let webPush: ServicePushes<WebPushChannel>?
        fileprivate let fcm: ServicePushes<FCMChannel>?
        fileprivate let webhookRequests: Requests?
        fileprivate let serviceRequests: Requests?
        fileprivate let contents: ActivityContents?
        fileprivate let certificateEnds: [String: Date]
        /// The places whose pushes use another account, or another form, than before.
        package let mended: Set<PushScheduler.AppService>
    }

    /// The requests to webhooks, or to the push services that are no webhooks and not APNs. Clients
    /// choose those: they may not use what an operator allows the app's backend.
    fileprivate struct Requests: Sendable {
        let sender: WebhookSender
        private let ranges: [AddressRange]
        private let trust: CurlTrust
        private let connectionsMax: Int

        /// Reuses the connections of `former` if it allows the same addresses, trusts the same
        /// certificates and allows as many connections. Throws ``Faults`` if memory is exhausted.
        init(
            _ name: String, to ranges: [AddressRange], _ trust: CurlTrust, connectionsMax: Int,
            after former: Requests?
        ) throws(Faults) {
            (self.ranges, self.trust, self.connectionsMax) = (ranges, trust, connectionsMax)
            if let former, former.ranges == ranges, former.trust == trust,
                former.connectionsMax == connectionsMax
            {
                sender = former.sender
                return
            }
            do throws(CurlError) {
                sender = try WebhookSender(
                    name: name, addressGuard: AddressGuard(allowed: ranges), trust: trust,
                    connectionsMax: connectionsMax)
            } catch {
                throw Faults(name, error.message)
            }
        }
    }

    private struct State {
        var current: Generation
        /// Generations that finish their pushes in flight.
        var retiring: [Int: Task<Void, Never>] = [:]
        var retired = 0
    }

    private let state: Mutex<State>
    private let share: ProviderTokenShare.OfIssuer
    private let content: WebhookPushes.Content

    /// Creates the senders of a configuration.
    ///
    /// - Parameters:
    ///   - share: Returns where the provider tokens of an issuer are stored.
    ///   - content: The content of webhook requests.
    /// - Throws: ``Faults`` if memory is exhausted.
    package init(
        _ configuration: PushConfiguration, _ files: PushFiles,
        share: @escaping ProviderTokenShare.OfIssuer, _ content: WebhookPushes.Content
    ) throws(Faults) {
        self.share = share
        self.content = content
        state = Mutex(
            State(
                current: try Self.generation(
                    configuration, files, after: nil, share: share, content: content)))
    }

    /// The senders for another configuration; unchanged ones reuse the existing connections.
    ///
    /// - Throws: ``Faults`` if memory is exhausted.
    package func next(
        _ configuration: PushConfiguration, _ files: PushFiles
    ) throws(Faults) -> Generation {
        let current = state.withLock { $0.current }
        return try Self.generation(
            configuration, files, after: current, share: share, content: content)
    }

    private static func generation(
        _ configuration: PushConfiguration, _ files: PushFiles, after former: Generation?,
        share: @escaping ProviderTokenShare.OfIssuer, content: WebhookPushes.Content
    ) throws(Faults) -> Generation {
        let connectionsMax = configuration.terms.webhooksMax
        var webhookRequests: Requests?
        if configuration.hasWebhooks {
            webhookRequests = try Requests(
                "webhooks", to: files.webhookRanges, files.webhookTrust,
                connectionsMax: connectionsMax, after: former?.webhookRequests)
        }
        var serviceRequests: Requests?
        if !files.webPush.isEmpty || !files.fcm.isEmpty {
            serviceRequests = try Requests(
                "push-services", to: files.serviceRanges, files.serviceTrust,
                connectionsMax: connectionsMax, after: former?.serviceRequests)
        }
        let apns =
            configuration.apps.isEmpty
            ? nil
            : APNsSender(configuration, files, after: former?.apns, share: share)
        let sender = serviceRequests?.sender
        var webPush: ServicePushes<WebPushChannel>?
        if let sender, !files.webPush.isEmpty {
            let channel = WebPushChannel(files.webPush, content, after: former?.webPush?.channel)
            webPush = ServicePushes(channel: channel, sender: sender, clock: content.clock)
        }
        var fcm: ServicePushes<FCMChannel>?
        if let sender, !files.fcm.isEmpty {
            let host = configuration.fcmHost.map { "\($0)" } ?? "fcm.googleapis.com"
            let channel = FCMChannel(
                files.fcm, at: "https://" + host, sender, content, after: former?.fcm?.channel)
            fcm = ServicePushes(channel: channel, sender: sender, clock: content.clock)
        }
        return Generation(
            apns: apns,
            webhooks: webhookRequests.map { WebhookPushes($0.sender, content) },
            webPush: webPush, fcm: fcm, webhookRequests: webhookRequests,
            serviceRequests: serviceRequests,
            contents: apns == nil ? nil : try ActivityContents(configuration, files, content),
            certificateEnds: files.certificateEnds,
            mended: (apns?.mended(since: former?.apns) ?? [])
                .union(webPush?.mended(since: former?.webPush) ?? [])
                .union(fcm?.mended(since: former?.fcm) ?? []))
    }

    /// Switches to another generation. Pushes in flight on connections that it does not reuse end
    /// there, each at its deadline at the latest; then those connections are closed.
    ///
    /// - Parameter resumes: Whether pushes that APNs rejected are retried.
    package func use(_ next: Generation, resumes: Bool) {
        state.withLock { state in
            let former = state.current
            state.current = next
            state.retired += 1
            let number = state.retired
            state.retiring[number] = Task { [weak self] in
                await former.contents?.drain()
                await former.apns?.drain(except: next.apns)
                if former.webhookRequests?.sender !== next.webhookRequests?.sender {
                    await former.webhookRequests?.sender.drain()
                }
                if former.serviceRequests?.sender !== next.serviceRequests?.sender {
                    await former.serviceRequests?.sender.drain()
                }
                self?.ended(number)
            }
        }
        if resumes { next.apns?.resume() }
    }

    private func ended(_ number: Int) {
        state.withLock { $0.retiring[number] = nil }
    }

    /// The expiry times of the certificates that identify apps to APNs.
    package var certificateEnds: [String: Date] { state.withLock { $0.current.certificateEnds } }

    /// Returns the sender of a push; `nil` when there is none: a ``PushLoop/Dependencies/Sender``.
    package func sender(
        of order: DuePush, asked: @escaping PushLoop.Dependencies.Asked
    ) -> (any PushSender)? {
        let current = state.withLock { $0.current }
        switch order.address {
        case .stream: return nil
        case .apns:
            guard order.activity != nil, let contents = current.contents else {
                return current.apns
            }
            return ActivitySender(contents: contents, asked: asked) { [self] in
                state.withLock { $0.current.apns }
            }
        case .webhook: return current.webhooks
        case .webPush: return current.webPush
        case .fcm: return current.fcm
        }
    }

    /// Returns the key with which an app's browsers subscribe to Web Push; `nil` without one.
    package func applicationServerKey(of app: String) -> String? {
        state.withLock { $0.current }.webPush?.channel.accounts[app]?.key.applicationServerKey
    }

    /// Returns what manages the broadcast channels of an app, by environment.
    package func channels(of app: String) -> [String: ActivityStarts.Channels] {
        state.withLock { $0.current }.apns?.channels(of: app) ?? [:]
    }

    /// Returns when the pushes in flight have ended, each at its deadline at the latest.
    package func drain() async {
        let (current, retiring) = state.withLock { ($0.current, $0.retiring) }
        await current.contents?.drain()
        // Their pushes for Live Activities go through the current sender.
        for task in retiring.values { await task.value }
        await current.apns?.drain()
        await current.webhookRequests?.sender.drain()
        await current.serviceRequests?.sender.drain()
    }
}
