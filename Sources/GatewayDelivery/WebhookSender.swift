import CurlMulti
import GatewayCore
import GatewaySigning

/// One attempt to deliver a message to a webhook.
package struct WebhookMessage: Sendable, Hashable {
    /// The message's id, the same for each attempt to deliver it. Visible ASCII without a dot.
    package var id: String
    /// The time of this attempt, in seconds since 1970.
    package var timestamp: Int64
    /// The content, in JSON.
    package var body: [UInt8]
    /// The app whose endpoint it goes to, if names of one app must not hold up those of another.
    package var app: String

    package init(id: String, timestamp: Int64, body: [UInt8], app: String = "") {
        self.id = id
        self.timestamp = timestamp
        self.body = body
        self.app = app
    }
}

/// A request to a push service that authenticates its sender in its header fields.
package struct PushServiceRequest: Sendable {
    package var endpoint: WebhookEndpoint
    package var fields: [(name: String, value: String)]
    package var body: [UInt8]
    /// The owner of the endpoint, whose names must not hold up those of another.
    package var owner: String

    package init(
        to endpoint: WebhookEndpoint, fields: [(name: String, value: String)], body: [UInt8],
        owner: String
    ) {
        (self.endpoint, self.fields, self.body, self.owner) = (endpoint, fields, body, owner)
    }
}

/// The response of a push service, and the first bytes of its body.
package typealias PushServiceAnswer = (response: WebhookResponse, body: [UInt8])

/// Sends webhooks, questions to content sources, and pushes over HTTPS: to permitted addresses only.
/// Redirects count as failures.
package final class WebhookSender: Sendable {
    /// The answer of a content source.
    package typealias Answer = (
        status: Int, body: [UInt8], failure: CurlError?, retryAfter: Int64?
    )

    private let client: GuardedClient
    /// The longest time of one delivery, and of one question.
    private static let (deadline, questionDeadline) = (Duration.seconds(20), Duration.seconds(5))

    /// Creates a sender with a thread called `name`, at most `connectionsMax` open connections and
    /// `requestsMax` requests in flight. Throws ``CurlError`` (`noMemory`).
    package init(
        name: String = "webhooks", addressGuard: AddressGuard,
        resolver: NameResolver = .system(), trust: CurlTrust = .system,
        connectionsMax: Int = 256, requestsMax: Int = 256
    ) throws(CurlError) {
        var configuration = CurlClient.Configuration(name: name)
        configuration.trust = trust
        configuration.requestsMax = requestsMax
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
        let response = try await attempt(
            message, to: endpoint, signer: signer, deadline: Self.deadline, bodyBytesMax: 1_024)
        return Self.answer(response, now: message.timestamp)
    }

    private static func answer(_ response: CurlResponse, now: Int64) -> WebhookResponse {
        var answer = WebhookResponse.status(
            response.status, retryAfter: retryAfter(response, now: now))
        answer.isMultiplexed = response.head.version == "2"
        return answer
    }

    /// Sends a push. Cancelling the task ends it.
    ///
    /// - Parameter now: The time in seconds since 1970.
    package func send(
        _ push: PushServiceRequest, now: Int64
    ) async throws(CurlError) -> PushServiceAnswer {
        let request = CurlRequest(
            "POST", origin: push.endpoint.origin, target: push.endpoint.target,
            fields: try CurlFields([("user-agent", "timeline-gateway")] + push.fields),
            body: push.body.isEmpty ? nil : push.body, timeout: Self.deadline)
        let response = try await client.send(
            request, to: push.endpoint, of: push.owner, bodyBytesMax: 16_384)
        return (Self.answer(response, now: now), response.body)
    }

    /// Asks a content source. Cancelling the task ends the request. Returns the answer with at most
    /// one byte more than content may have, and the reason if the rest of the body is missing.
    package func ask(
        _ question: WebhookMessage, to endpoint: WebhookEndpoint, signer: WebhookSigner
    ) async throws(CurlError) -> Answer {
        let response = try await attempt(
            question, to: endpoint, signer: signer, deadline: Self.questionDeadline,
            bodyBytesMax: ActivityContent.bytesMax + 1)
        return (
            response.status, response.body, response.failure,
            Self.retryAfter(response, now: question.timestamp)
        )
    }

    /// Waits for the attempts in flight to end, and makes no further ones.
    package func drain() async {
        await client.drain()
    }

    private func attempt(
        _ message: WebhookMessage, to endpoint: WebhookEndpoint, signer: WebhookSigner,
        deadline: Duration, bodyBytesMax: Int
    ) async throws(CurlError) -> CurlResponse {
        let request = CurlRequest(
            "POST", origin: endpoint.origin, target: endpoint.target,
            fields: try Self.fields(message, signer), body: message.body, timeout: deadline)
        return try await client.send(
            request, to: endpoint, of: message.app, bodyBytesMax: bodyBytesMax)
    }

    private static func retryAfter(_ response: CurlResponse, now: Int64) -> Int64? {
        response.head["retry-after"].flatMap { RetryAfter.seconds($0, now: now) }
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
