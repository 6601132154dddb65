/// The keys a gateway signs with over time: published first, signing later, retired last.
///
/// A key signs only after it has been published for as long as a verifier may keep a key set, and
/// stays published until everything it signed has expired and one such time more. A verifier
/// that keeps a set no longer than that knows the key of every message still valid, at any moment.
///
/// Times are handed in, in seconds since 1970, and a state changes only in ``advance(now:)``: a
/// clock that goes back never takes a key out of use or back into it, a call that comes late only
/// keeps the present key longer.
package struct KeyRing: Sendable, Equatable {
    /// How long keys overlap, seconds.
    package struct Timing: Sendable, Equatable {
        /// How long a key is published before it signs; no verifier may keep a key set for longer.
        package let publishLead: Int64
        /// The longest time from `iat` to `exp` of anything a key of the ring signs: of
        /// notifications, and of tokens where the ring signs those too.
        package let signatureLifetime: Int64

        /// The overlap; negative times count as zero.
        package init(publishLead: Int64 = 300, signatureLifetime: Int64) {
            self.publishLead = max(0, publishLead)
            self.signatureLifetime = max(0, signatureLifetime)
        }

        /// `max-age` of the published set: a tenth below the lead, which pays for the moment
        /// between a key's time of publication and the first answer that holds it.
        package var keySetMaxAge: Int64 { publishLead - publishLead / 10 }
    }

    /// Where a key stands. One that is retired is no longer in the ring.
    package enum State: Sendable, Equatable {
        /// Published, does not sign yet.
        ///
        /// Can transition to: `signing` at `from`.
        case published(from: Int64)
        /// Signs everything; exactly one key of a ring does.
        ///
        /// Can transition to: `retiring` when a newer key begins to sign.
        case signing(since: Int64)
        /// Signs nothing any more, but messages it signed are still valid.
        ///
        /// Can transition to: retired (leaves the ring) at `until`.
        case retiring(until: Int64)
    }

    /// A key and where it stands.
    package struct Entry: Sendable, Equatable {
        /// The key.
        package let key: SigningKey
        /// Where it stands.
        package internal(set) var state: State
    }

    /// Most keys of a ring. Rotating more often than keys retire is a mistake, and a key set of
    /// unbounded length would be what verifiers pay for it.
    package static let keysMax = 16

    /// How long keys overlap.
    package let timing: Timing
    /// The key that signs.
    package private(set) var signing: Entry
    /// The keys that are published but do not sign, in the order in which they came.
    package private(set) var others: [Entry]

    /// A new ring. Its one key signs at once: no verifier can hold an older set.
    package init(first key: SigningKey, timing: Timing, now: Int64) {
        self.timing = timing
        signing = Entry(key: key, state: .signing(since: now))
        others = []
    }

    /// A ring as it was kept; the caller has made sure that `signing` signs and `others` do not.
    init(signing: Entry, others: [Entry], timing: Timing) {
        self.timing = timing
        self.signing = signing
        self.others = others
    }

    /// The key that signs.
    package var signingKey: SigningKey { signing.key }

    /// Every key whose signatures may be met now or soon, for `/.well-known/jwks.json`.
    package var publishedKeys: JWKSet {
        JWKSet(([signing] + others).map(\.key.publicKey))
    }

    /// When ``advance(now:)`` will next change something; `nil` while no rotation is under way.
    package var nextTransition: Int64? {
        others.compactMap { entry in
            switch entry.state {
            case .published(let time), .retiring(let time): time
            case .signing: nil
            }
        }.min()
    }

    /// Rotations to the same algorithm within so many seconds are one: two timers that go off
    /// together, or a command that is repeated because its answer was lost.
    package static let sameMomentSeconds: Int64 = 10

    /// Returns whether a rotation to `algorithm` at this moment has been made already.
    func isRotated(to algorithm: SigningAlgorithm, now: Int64) -> Bool {
        others.contains { entry in
            guard case .published(let from) = entry.state, entry.key.algorithm == algorithm
            else { return false }
            let publishedAt = from.addingClamped(-timing.publishLead)
            return
                (now.addingClamped(
                    -Self.sameMomentSeconds)...now.addingClamped(
                    Self.sameMomentSeconds)).contains(publishedAt)
        }
    }

    /// Publishes a new key, which will sign once ``Timing/publishLead`` has passed.
    ///
    /// - Throws: ``SigningError`` (`limitExceeded`) when the ring has ``keysMax`` keys.
    package mutating func rotate(now: Int64, newKey: SigningKey) throws(SigningError) {
        guard others.count + 1 < Self.keysMax else {
            throw SigningError(
                .limitExceeded, "the key ring has \(Self.keysMax) keys; wait until one retires")
        }
        let from = now.addingClamped(timing.publishLead)
        others.append(Entry(key: newKey, state: .published(from: from)))
    }

    /// Lets every change of state happen that is due at `now`.
    ///
    /// - Returns: the keys that are retired: out of the ring, their files to be removed.
    package mutating func advance(now: Int64) -> [SigningKey] {
        let due = others.filter { entry in
            if case .published(let from) = entry.state { from <= now } else { false }
        }
        for entry in due {
            // Also one that a yet newer key overtakes at once: another holder of the ring may have
            // signed with it in between.
            others.removeAll { $0.key.kid == entry.key.kid }
            var former = signing
            former.state = .retiring(
                until: now.addingClamped(timing.signatureLifetime).addingClamped(timing.publishLead)
            )
            others.append(former)
            signing = Entry(key: entry.key, state: .signing(since: now))
        }
        let retired = others.filter { entry in
            if case .retiring(let until) = entry.state { until <= now } else { false }
        }
        others.removeAll { entry in retired.contains { $0.key.kid == entry.key.kid } }
        return retired.map(\.key)
    }
}

extension Int64 {
    /// The sum, or the end of the range it would leave: a time beyond it is never reached anyway.
    func addingClamped(_ other: Int64) -> Int64 {
        let (sum, hasOverflown) = addingReportingOverflow(other)
        guard hasOverflown else { return sum }
        return other > 0 ? .max : .min
    }
}
