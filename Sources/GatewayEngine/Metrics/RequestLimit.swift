/// A limit that rejects requests, by its name in the metric.
package enum RequestLimit: String, CaseIterable, Sendable {
    case address, app, client, tickets
    case pushAddresses = "push_addresses"
    case refusedTokens = "refused_tokens"
    case bytesInWork = "bytes_in_work"
}
