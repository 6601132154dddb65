import GatewayCore

/// The rates of requests, by the party to which they are charged.
package struct RateLimits: Sendable, Hashable {
    /// Requests of one source address.
    package var address = TokenRate(count: 20_000, period: 1_000, burst: 40_000)
    /// Requests of one app, from its backends and its clients.
    package var app = TokenRate(count: 20_000, period: 1_000, burst: 40_000)
    package var client = TokenRate(count: 100, period: 1_000, burst: 1_000)
    /// Tickets of one client: more than a client needs that reconnects every second.
    package var tickets = TokenRate(count: 60, period: 60_000, burst: 60)
    /// Requests of one source address with an invalid token.
    package var refusedTokens = TokenRate(count: 100, period: 1_000, burst: 2_000)
    /// Push addresses that one client registers and that its registration before did not have.
    package var pushAddresses = TokenRate(count: 64, period: 86_400_000, burst: 128)

    /// The default rates.
    package init() {}

    /// Reads `100/1s`, or `100/1s burst 1000`; the default burst is the count of one period.
    static func read(_ text: String) -> TokenRate? {
        let words = text.split(separator: " ")
        let parts = (words.first ?? "").split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, words.count == 1 || (words.count == 3 && words[1] == "burst"),
            let count = Int64(parts[0]), (1...TokenRate.countMax).contains(count),
            parts[1].contains(where: \.isLetter),
            let seconds = DurationText.seconds(String(parts[1])), (1...86_400).contains(seconds)
        else { return nil }
        var burst = count
        if words.count == 3 {
            guard let number = Int64(words[2]), (1...TokenRate.countMax).contains(number) else {
                return nil
            }
            burst = number
        }
        return TokenRate(count: count, period: seconds * 1_000, burst: burst)
    }
}
