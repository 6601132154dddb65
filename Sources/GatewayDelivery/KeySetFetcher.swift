import CurlMulti
import GatewayCore
import GatewaySigning

/// Fetches the key sets that issuers publish, from permitted addresses only.
package final class KeySetFetcher: Sendable {
    package struct Fetched: Sendable {
        /// The set; it has at least one usable key.
        package let set: JWKSet
        /// The seconds for which the response is fresh, if it states them.
        package let maxAge: Int64?
    }

    /// The reason why there is no set, for a log.
    package struct Failure: Error, Sendable, Equatable {
        package let message: String
    }

    private let client: GuardedClient
    /// The longest time of one fetch.
    private static let deadline = Duration.seconds(10)

    /// Creates a fetcher without connections; `addressGuard` decides which addresses are permitted,
    /// `trust` which certificates. Throws ``CurlError`` (`noMemory`).
    package init(
        addressGuard: AddressGuard, trust: CurlTrust = .system
    ) throws(CurlError) {
        var configuration = CurlClient.Configuration(name: "issuer-keys")
        configuration.trust = trust
        configuration.requestsMax = 16
        configuration.connectionsMax = 16
        configuration.idleMax = .seconds(60)
        client = try GuardedClient(configuration, addressGuard: addressGuard, resolver: .system())
    }

    /// Fetches a set. Cancelling the task ends it.
    package func fetch(_ endpoint: WebhookEndpoint) async throws(Failure) -> Fetched {
        let response: CurlResponse
        do throws(CurlError) {
            let fields = try CurlFields([
                ("accept", "\(JWKSet.mediaType), application/json"),
                ("user-agent", "timeline-gateway"),
            ])
            response = try await client.send(
                CurlRequest(
                    "GET", origin: endpoint.origin, target: endpoint.target, fields: fields,
                    timeout: Self.deadline), to: endpoint, bodyBytesMax: JWKSet.bytesMax + 1)
        } catch {
            throw Failure(message: error.message)
        }
        guard response.status == 200 else {
            throw Failure(message: "the answer has the status \(response.status)")
        }
        if let failure = response.failure, response.body.count <= JWKSet.bytesMax {
            throw Failure(message: failure.message)
        }
        let set: JWKSet
        do throws(SigningError) {
            set = try JWKSet(parsing: response.body)
        } catch {
            throw Failure(message: error.message)
        }
        // An issuer that withdraws all its keys at once is more likely to be in trouble.
        guard !set.keys.isEmpty else {
            let reasons = set.skipped.isEmpty ? "" : " (\(set.skipped.joined(separator: "; ")))"
            throw Failure(message: "the key set has no usable key\(reasons)")
        }
        return Fetched(
            set: set, maxAge: response.head["cache-control"].flatMap(CacheControl.maxAge))
    }

    /// Ends the requests in flight, and makes no further ones.
    package func drain() async {
        await client.drain()
    }
}
