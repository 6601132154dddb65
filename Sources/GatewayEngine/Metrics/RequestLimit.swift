/// A limit that refuses requests, as the metric names it.
package enum RequestLimit: String, CaseIterable, Sendable {
    case address, app, client
    case refusedTokens = "refused_tokens"
    case bytesInWork = "bytes_in_work"
}
