import GatewayCore
import GatewaySigning

/// One attempt to deliver a message to a webhook.
package struct WebhookMessage: Sendable, Hashable {
    /// Names the message: the same at each attempt to say the same. Visible ASCII without a dot.
    package var id: String
    /// When this attempt is made, in seconds since 1970.
    package var timestamp: Int64
    /// What is said, in JSON.
    package var body: [UInt8]

    /// An attempt.
    package init(id: String, timestamp: Int64, body: [UInt8]) {
        self.id = id
        self.timestamp = timestamp
        self.body = body
    }
}

/// What came of an attempt.
package struct WebhookResult: Sendable, Hashable {
    /// What its schedule takes.
    package let answer: WebhookSchedule.Answer
    /// Why there was no answer.
    package let error: DeliveryError?
}

/// Sends webhooks: signed, to addresses that may be asked, and nowhere else.
///
/// The name of an endpoint is resolved for each attempt, addresses that may not be asked are left
/// out, and the connection goes to one of the others: no name can lead it elsewhere in between.
/// The engine asks again whether it may whenever a socket is about to connect. Redirects are
/// answers, and failures.
package final class WebhookSender: Sendable {
    /// Most addresses of a name that are tried in one attempt.
    package static let addressesMax = 3

    private let engine: DeliveryEngine
    private let resolver: NameResolver
    private let addressGuard: AddressGuard
    private let deadline: Duration

    /// A sender.
    ///
    /// - Parameters:
    ///   - addressGuard: Which addresses may be asked.
    ///   - resolver: Finds the addresses of endpoints.
    ///   - trust: Which certificates of endpoints are trusted.
    ///   - deadline: Longest time of one request.
    ///   - connectionsMax: Open connections.
    /// - Throws: ``DeliveryError`` (`noMemory`).
    package init(
        addressGuard: AddressGuard, resolver: NameResolver = .system(),
        trust: DeliveryEngine.Configuration.Trust = .system, deadline: Duration = .seconds(20),
        connectionsMax: Int = 256
    ) throws(DeliveryError) {
        var configuration = DeliveryEngine.Configuration(name: "webhooks")
        configuration.trust = trust
        configuration.addressGuard = addressGuard
        configuration.requestsMax = 256
        configuration.connectionsMax = connectionsMax
        configuration.connectionsPerHostMax = 4
        configuration.idleMax = .seconds(300)
        configuration.answerFields = ["retry-after"]
        configuration.bodyBytesMax = 1_024
        engine = try DeliveryEngine(configuration)
        self.addressGuard = addressGuard
        self.resolver = resolver
        self.deadline = deadline
    }

    /// Makes one attempt. A task that is cancelled ends it.
    package func send(
        _ message: WebhookMessage, to endpoint: WebhookEndpoint, signer: WebhookSigner
    ) async -> WebhookResult {
        do throws(DeliveryError) {
            let answer = try await attempt(message, to: endpoint, signer: signer)
            let retryAfter = answer.field(0).flatMap {
                RetryAfter.seconds($0, now: message.timestamp)
            }
            return WebhookResult(
                answer: .status(answer.status, retryAfter: retryAfter), error: nil)
        } catch {
            return WebhookResult(answer: .none, error: error)
        }
    }

    /// Lets the attempts under way end, and makes no further ones.
    package func drain() async {
        await engine.drain()
    }

    private func attempt(
        _ message: WebhookMessage, to endpoint: WebhookEndpoint, signer: WebhookSigner
    ) async throws(DeliveryError) -> DeliveryAnswer {
        var request = DeliveryRequest(
            origin: endpoint.origin, target: endpoint.target,
            fields: try Self.fields(message, signer), body: message.body, deadline: deadline)
        var failure = DeliveryError(.unresolved, "\(endpoint.host) has no address")
        for address in try await addresses(of: endpoint) {
            request.address = address
            do throws(DeliveryError) {
                return try await engine.send(request)
            } catch {
                guard error.code == .unreachable else { throw error }
                failure = error
            }
        }
        throw failure
    }

    /// The addresses that may be asked, in the order in which they are.
    private func addresses(
        of endpoint: WebhookEndpoint
    ) async throws(DeliveryError) -> ArraySlice<IPAddress> {
        var found = endpoint.address.map { [$0] }
        if found == nil { found = await resolver.addresses(endpoint.host) }
        guard let found else {
            throw DeliveryError(.unresolved, "\(endpoint.host) could not be resolved")
        }
        let allowed = found.filter { addressGuard.refusal(of: $0) == nil }
        if allowed.isEmpty, let address = found.first,
            let reason = addressGuard.refusal(of: address)
        {
            throw .notAllowed(address, reason)
        }
        return allowed.prefix(Self.addressesMax)
    }

    private static func fields(
        _ message: WebhookMessage, _ signer: WebhookSigner
    ) throws(DeliveryError) -> DeliveryFields {
        let signed: [(name: String, value: String)]
        do throws(SigningError) {
            signed = try signer.fields(
                id: message.id, timestamp: message.timestamp, body: message.body)
        } catch {
            throw DeliveryError(.badRequest, error.message)
        }
        return try DeliveryFields(
            [("content-type", "application/json"), ("user-agent", "timeline-gateway")] + signed)
    }
}
