import CurlMulti
import GatewayCore

/// An HTTP client for URLs that others choose: it connects to permitted addresses only.
///
/// For each request, the client resolves the endpoint's name once, drops forbidden addresses and
/// connects to one of the others: the name cannot lead elsewhere in between. It checks the address
/// again whenever a socket is about to connect, and follows no redirects.
final class GuardedClient: Sendable {
    /// The most addresses of a name that are tried for one request.
    static let addressesMax = 3

    private let client: CurlClient
    private let resolver: NameResolver
    private let addressGuard: AddressGuard

    /// Adds the check of addresses to `configuration`. Throws ``CurlError`` (`noMemory`).
    init(
        _ configuration: CurlClient.Configuration, addressGuard: AddressGuard,
        resolver: NameResolver
    ) throws(CurlError) {
        var configuration = configuration
        configuration.addressRefusal = { bytes in
            guard let address = IPAddress(bytes: bytes) else { return "it is no address" }
            return addressGuard.refusal(of: address).map { Self.message(address, $0) }
        }
        client = try CurlClient(configuration)
        self.addressGuard = addressGuard
        self.resolver = resolver
    }

    /// Sends a request to the first address of the endpoint that can be reached. Cancelling the
    /// task ends the request.
    ///
    /// - Parameter owner: The owner of the endpoint, for ``NameResolver/addresses(_:of:)``.
    func send(
        _ request: CurlRequest, to endpoint: WebhookEndpoint, of owner: String = "",
        bodyBytesMax: Int
    ) async throws(CurlError) -> CurlResponse {
        var request = request
        var failure = CurlError(.unresolved, "\(endpoint.host) has no address")
        for address in try await addresses(of: endpoint, owner) {
            request.address = address.bytes.count == 4 ? "\(address)" : "[\(address)]"
            do throws(CurlError) {
                return try await client.send(request, bodyBytesMax: bodyBytesMax)
            } catch {
                guard error.code == .unreachable else { throw error }
                failure = error
            }
        }
        throw failure
    }

    /// Waits for the requests in flight to end, and makes no further ones.
    func drain() async {
        await client.drain()
    }

    /// Returns the permitted addresses, in the order in which to try them.
    private func addresses(
        of endpoint: WebhookEndpoint, _ owner: String
    ) async throws(CurlError) -> ArraySlice<IPAddress> {
        var found = endpoint.address.map { [$0] }
        if found == nil { found = await resolver.addresses(endpoint.host, of: owner) }
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

    private static func message(_ address: IPAddress, _ reason: AddressGuard.Rejection) -> String {
        "\(address) is not allowed: \(reason.rawValue)"
    }
}
