import CurlMulti
import GatewayCore
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

/// Sends webhooks: signed, and to permitted addresses only.
///
/// The name of an endpoint is resolved for each attempt, forbidden addresses are dropped, and the
/// connection goes to one of the others, so that the name cannot lead it elsewhere in between. The
/// client checks the address again whenever a socket is about to connect. Redirects are not
/// followed; they count as failures.
package final class WebhookSender: Sendable {
    /// The most addresses of a name that are tried in one attempt.
    package static let addressesMax = 3

    private let client: CurlClient
    private let resolver: NameResolver
    private let addressGuard: AddressGuard
    private let deadline: Duration

    /// A sender.
    ///
    /// - Parameters:
    ///   - addressGuard: Decides which addresses are permitted.
    ///   - resolver: Resolves the names of endpoints.
    ///   - trust: The certificates to trust in endpoints.
    ///   - deadline: The longest time of one request.
    ///   - connectionsMax: The most open connections.
    /// - Throws: ``CurlError`` (`noMemory`).
    package init(
        addressGuard: AddressGuard, resolver: NameResolver = .system(),
        trust: CurlTrust = .system, deadline: Duration = .seconds(20),
        connectionsMax: Int = 256
    ) throws(CurlError) {
        var configuration = CurlClient.Configuration(name: "webhooks")
        configuration.trust = trust
        configuration.addressRefusal = { bytes in
            guard let address = IPAddress(bytes: bytes) else { return "it is no address" }
            return addressGuard.refusal(of: address).map { Self.message(address, $0) }
        }
        configuration.requestsMax = 256
        configuration.connectionsMax = connectionsMax
        configuration.connectionsPerHostMax = 4
        configuration.idleMax = .seconds(300)
        client = try CurlClient(configuration)
        self.addressGuard = addressGuard
        self.resolver = resolver
        self.deadline = deadline
    }

    /// Makes one attempt. Cancelling the task ends it.
    package func send(
        _ message: WebhookMessage, to endpoint: WebhookEndpoint, signer: WebhookSigner
    ) async throws(CurlError) -> WebhookResponse {
        let response = try await attempt(message, to: endpoint, signer: signer)
        return .status(
            response.status,
            retryAfter: response.head["retry-after"].flatMap {
                RetryAfter.seconds($0, now: message.timestamp)
            })
    }

    /// Waits for the attempts in flight to end, and makes no further ones.
    package func drain() async {
        await client.drain()
    }

    private func attempt(
        _ message: WebhookMessage, to endpoint: WebhookEndpoint, signer: WebhookSigner
    ) async throws(CurlError) -> CurlResponse {
        var request = CurlRequest(
            "POST", origin: endpoint.origin, target: endpoint.target,
            fields: try Self.fields(message, signer), body: message.body, timeout: deadline)
        var failure = CurlError(.unresolved, "\(endpoint.host) has no address")
        for address in try await addresses(of: endpoint) {
            request.address = address.bytes.count == 4 ? "\(address)" : "[\(address)]"
            do throws(CurlError) {
                return try await client.send(request, bodyBytesMax: 1_024)
            } catch {
                guard error.code == .unreachable else { throw error }
                failure = error
            }
        }
        throw failure
    }

    /// Returns the permitted addresses, in the order in which to try them.
    private func addresses(
        of endpoint: WebhookEndpoint
    ) async throws(CurlError) -> ArraySlice<IPAddress> {
        var found = endpoint.address.map { [$0] }
        if found == nil { found = await resolver.addresses(endpoint.host) }
        guard let found else {
            throw CurlError(.unresolved, "\(endpoint.host) could not be resolved")
        }
        let allowed = found.filter { addressGuard.refusal(of: $0) == nil }
        if allowed.isEmpty, let address = found.first,
            let reason = addressGuard.refusal(of: address)
        {
            throw CurlError(.addressNotAllowed, Self.message(address, reason))
        }
        return allowed.prefix(Self.addressesMax)
    }

    private static func message(_ address: IPAddress, _ reason: AddressGuard.Refusal) -> String {
        "\(address) is not allowed: \(reason.rawValue)"
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
