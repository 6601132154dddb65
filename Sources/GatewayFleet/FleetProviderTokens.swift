import Foundation
import GatewayDelivery
import GatewayPostgres

/// The tokens of push providers, one for each key, which all nodes use: providers refuse tokens that
/// change too often.
package struct FleetProviderTokens: Sendable {
    /// The lifetime of a token, in seconds; providers accept it for an hour.
    private static let lifetime: Int32 = 3_000
    private static let kind = "provider-token"

    private let rounds: PostgresRounds<ProviderTokenRound>
    private let key: FleetKey

    /// Reads and offers tokens on a connection of a loop.
    ///
    /// - Parameter key: The key that wraps them: a dump of the database reveals none.
    init(_ address: PostgresAddress, _ key: FleetKey, on loop: PostgresLoop) {
        rounds = PostgresRounds(address, patience: 3_000, on: loop)
        self.key = key
    }

    /// Returns where the tokens of an issuer are stored.
    package func share(of issuer: String) -> ProviderTokenShare {
        ProviderTokenShare(
            read: { await run(.read(key: issuer), of: issuer) },
            replace: { _, new in
                guard let wrapped = wrap(new, of: issuer) else { return new }
                let offer = ProviderTokenRequest.offer(
                    key: issuer, wrapped: wrapped, seconds: Self.lifetime)
                return await run(offer, of: issuer) ?? new
            })
    }

    /// Returns the token in force; `nil` if it cannot be read.
    private func run(
        _ request: ProviderTokenRequest, of issuer: String
    ) async -> SharedProviderToken? {
        let result = await withCheckedContinuation { continuation in
            rounds.run(ProviderTokenRound(request)) { continuation.resume(returning: $0) }
        }
        guard case .success(let wrapped?) = result else { return nil }
        return unwrap(wrapped, of: issuer)
    }

    private func wrap(_ token: SharedProviderToken, of issuer: String) -> [UInt8]? {
        try? key.wrap(
            SecretBytes(copying: Array("\(token.issuedAt) \(token.text)".utf8)), kind: Self.kind,
            name: issuer)
    }

    private func unwrap(_ wrapped: [UInt8], of issuer: String) -> SharedProviderToken? {
        let text = try? key.unwrap(wrapped, kind: Self.kind, name: issuer)
            .withBytes { String(decoding: $0, as: UTF8.self) }
        guard let parts = text?.split(separator: " ", maxSplits: 1), parts.count == 2,
            let issuedAt = Int64(parts[0])
        else { return nil }
        return SharedProviderToken(text: String(parts[1]), issuedAt: issuedAt)
    }
}
