/// The use of a push provider's token by all nodes: one node makes it, the others read it.
///
/// A node that has none, or whose token ends, makes one and offers it; the server puts it in force
/// unless another is, and answers with the one in force.
package struct ProviderToken: Sendable {
    /// The time between two offers, milliseconds.
    package static let offerInterval: Int64 = 1_000

    /// A decision about the token.
    package enum Decision: Sendable, Equatable {
        /// Use this token, in the form in which it is stored.
        case use([UInt8])
        /// Make a token and offer it; push nothing until the answer is there.
        case offer
        /// Push nothing: an offer is on its way, or failed a moment ago.
        case wait
    }

    private var token: [UInt8] = []
    private var end: Int64 = .min
    private var nextOffer: Int64 = .min

    /// No token is known.
    package init() {}

    /// Decides which token to use.
    ///
    /// - Parameter now: The time by a monotonic clock; never the wall clock, which another node may
    ///   have differently.
    package mutating func decision(at now: Int64) -> Decision {
        if now < end { return .use(token) }
        guard nextOffer <= now else { return .wait }
        nextOffer = now + Self.offerInterval
        return .offer
    }

    /// Adopts the token in force.
    ///
    /// - Parameters:
    ///   - token: The token in the form in which it is stored.
    ///   - milliseconds: The time until its end, which lies well before the provider's.
    ///   - now: The time by the same clock.
    package mutating func adopt(_ token: [UInt8], endsIn milliseconds: Int64, at now: Int64) {
        self.token = token
        end = now + milliseconds
    }
}

extension ProviderToken {
    /// The statement that offers a token: the name of its key, the token as it is stored, and the
    /// seconds for which it is valid. Its row has the token in force, the milliseconds until its
    /// end, and whether that is the one offered.
    package static let offering = PostgresStatement(
        "offer-token",
        sql: """
            SELECT o_wrapped, o_milliseconds, o_is_own
            FROM tg.offer_token($1::text, $2::bytea, $3::bigint::int)
            """)
}
