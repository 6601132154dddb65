import CurlMulti
import GatewayCore
import GatewayDelivery
import WidgetModel

/// One row of the table of push services over HTTPS: what a push is to the service, and what its
/// responses mean.
protocol PushChannel: Sendable {
    /// The identity of an app at the service.
    associatedtype Account: Equatable

    static var service: PushService { get }
    /// The identities of the apps that it has pushes for.
    var accounts: [String: Account] { get }

    /// Returns the request for a push. Throws the report on one that cannot be sent.
    func request(for order: DuePush, from account: Account) async throws(PushReport)
        -> PushServiceRequest
    /// Returns what is sent at once after a response to a request; `nil` if that response counts.
    func request(
        after answer: PushServiceAnswer, to request: PushServiceRequest, for order: DuePush,
        from account: Account
    ) async throws(PushReport) -> PushServiceRequest?
    /// Returns the reaction to a response, and its reason if that is more than the status.
    func reaction(to answer: PushServiceAnswer) -> (reaction: APNsReaction, reason: String?)
}

/// Sends the pushes of one service.
struct ServicePushes<Channel: PushChannel>: PushSender {
    let channel: Channel
    let sender: WebhookSender
    let clock: GatewayClock

    /// The apps that have another account than before, or other addresses and certificates.
    func mended(since former: ServicePushes?) -> Set<PushScheduler.AppService> {
        let changed = channel.accounts.filter {
            former?.channel.accounts[$0.key] != $0.value || former?.sender !== sender
        }
        return Set(changed.keys.map { PushScheduler.AppService(app: $0, Channel.service) })
    }

    func send(_ order: DuePush, _ finished: @escaping @Sendable (PushReport) -> Void) {
        Task { finished(await report(order)) }
    }

    private func report(_ order: DuePush) async -> PushReport {
        guard let account = channel.accounts[order.client.app] else {
            // The next configuration says what becomes of it.
            return PushReport(result: .notSent, reason: "NotConfigured")
        }
        do throws(PushReport) {
            let request = try await channel.request(for: order, from: account)
            var answer = try await ask(request)
            let next = try await channel.request(
                after: answer, to: request, for: order, from: account)
            if let next { answer = try await ask(next) }
            let (reaction, reason) = channel.reaction(to: answer)
            let response = answer.response
            return PushReport(
                result: .service(reaction.verdict, isMultiplexed: response.isMultiplexed),
                status: response.status,
                reason: response.isSuccess ? nil : reason ?? String(response.status),
                alert: reaction.alert)
        } catch {
            return error
        }
    }

    private func ask(
        _ request: PushServiceRequest
    ) async throws(PushReport) -> PushServiceAnswer {
        do throws(CurlError) {
            return try await sender.send(request, now: clock.wallSeconds())
        } catch {
            throw PushReport(error)
        }
    }
}

extension PushReport {
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

    static let unsigned = PushReport(result: .service(.retry(.device)), reason: "NotSigned")
    static let badToken = PushReport(result: .service(.dropAddress), reason: "BadToken")
}
