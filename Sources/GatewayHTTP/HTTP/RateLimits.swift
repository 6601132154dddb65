import GatewayCore
import GatewayEngine

/// Rates of requests, by what they are counted for.
package struct RateLimits: Sendable, Hashable {
    /// Requests of one source address.
    package var address = TokenRate(count: 20_000, period: 1_000, burst: 40_000)
    /// Requests of one app, its backends' and its clients'.
    package var app = TokenRate(count: 20_000, period: 1_000, burst: 40_000)
    /// Requests of one client.
    package var client = TokenRate(count: 100, period: 1_000, burst: 1_000)
    /// Requests of one source address whose token is not valid.
    package var refusedTokens = TokenRate(count: 100, period: 1_000, burst: 2_000)

    /// The default rates.
    package init() {}
}
