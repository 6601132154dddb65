import CurlMulti
import GatewayPush
import GatewaySigning

/// One attempt to deliver a message to a webhook.
package struct WebhookMessage: Sendable, Hashable {
    /// The message's id, the same for each attempt to deliver it. Visible ASCII without a dot.
    package var id: String
    /// The time of this attempt, in seconds since 1970.
    package var timestamp: Int64
    /// The content, in JSON.
    package var body: [UInt8]

    /// An attempt.
    package init(id: String, timestamp: Int64, body: [UInt8]) {
        self.id = id
        self.timestamp = timestamp
        self.body = body
    }
}

/// Sends webhooks: signed, and to permitted addresses only. Redirects count as failures.
package final class WebhookSender: Sendable {
    private let client: GuardedClient
    /// The longest time of one request.
    private static let deadline = Duration.seconds(20)

    /// A sender.
    ///
    /// - Parameters:
    ///   - addressGuard: Decides which addresses are permitted.
    ///   - resolver: Resolves the names of endpoints.
    ///   - trust: The certificates to trust in endpoints.
    ///   - connectionsMax: The most open connections.
    /// - Throws: ``CurlError`` (`noMemory`).
    package init(
        addressGuard: AddressGuard, resolver: NameResolver = .system(),
        trust: CurlTrust = .system, connectionsMax: Int = 256
    ) throws(CurlError) {
        var configuration = CurlClient.Configuration(name: "webhooks")
        configuration.trust = trust
        configuration.requestsMax = 256
        configuration.connectionsMax = connectionsMax
        // The caller limits the requests to a host. One that waits in libcurl waits for others'.
        configuration.connectionsPerHostMax = 0
        configuration.waitsToShare = false
        configuration.idleMax = .seconds(300)
        client = try GuardedClient(configuration, addressGuard: addressGuard, resolver: resolver)
    }

    /// Makes one attempt. Cancelling the task ends it.
    package func send(
        _ message: WebhookMessage, to endpoint: WebhookEndpoint, signer: WebhookSigner
    ) async throws(CurlError) -> WebhookResponse {
        let response = try await attempt(message, to: endpoint, signer: signer)
        var answer = WebhookResponse.status(
            response.status,
            retryAfter: response.head["retry-after"].flatMap {
                RetryAfter.seconds($0, now: message.timestamp)
            })
        answer.isMultiplexed = response.head.version == "2"
        return answer
    }

    /// Waits for the attempts in flight to end, and makes no further ones.
    package func drain() async {
        await client.drain()
    }

    private func attempt(
        _ message: WebhookMessage, to endpoint: WebhookEndpoint, signer: WebhookSigner
    ) async throws(CurlError) -> CurlResponse {
        let request = CurlRequest(
            "POST", origin: endpoint.origin, target: endpoint.target,
            fields: try Self.fields(message, signer), body: message.body, timeout: Self.deadline)
        return try await client.send(request, to: endpoint, bodyBytesMax: 1_024)
    }

    private static func fields(
        _ message: WebhookMessage, _ signer: WebhookSigner
    ) throws(CurlError) -> CurlFields {
        let signed: [(name: String, value: String)]
        do throws(SigningError) {
            signed = try signer.fields(
                id: message.id, timestamp: message.timestamp, body: message.body)
        } catch {
            throw CurlError(.badRequest, error.message)
        }
        return try CurlFields(
            [("content-type", "application/json"), ("user-agent", "timeline-gateway")] + signed)
    }
}
