/// The issuer whose keys are in the data directory, for tokens of commands and of `/tokens`.
package enum LocalIssuer {
    /// `iss` of its tokens.
    package static let name = "timeline-gateway"
    /// The longest life of a client token, in seconds.
    package static let clientTokenSecondsMax: Int64 = 30 * 24 * 3600
}
