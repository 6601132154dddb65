import GatewayCore

/// The rates of requests, by the party to which they are charged.
package struct RateLimits: Sendable, Hashable {
    /// Requests of one source address.
    package var address = TokenRate(count: 20_000, period: 1_000, burst: 40_000)
    /// Requests of one app, from its backends and its clients.
    package var app = TokenRate(count: 20_000, period: 1_000, burst: 40_000)
    package var client = TokenRate(count: 100, period: 1_000, burst: 1_000)
    /// Requests of one source address with an invalid token.
    package var refusedTokens = TokenRate(count: 100, period: 1_000, burst: 2_000)
    /// Push addresses that one client registers and that its registration before did not have.
    package var pushAddresses = TokenRate(count: 64, period: 86_400_000, burst: 128)

    /// The default rates.
    package init() {}
}
