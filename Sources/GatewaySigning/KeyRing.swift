/// The signing keys of a gateway over time: each is first published, then signs, and finally
/// retires.
///
/// A key signs only after it has been published for as long as a verifier may cache a key set, and
/// stays published until everything it signed has expired plus the same time again. A verifier that
/// caches a set no longer than that always knows the key of every valid message.
///
/// The time is passed in, in seconds since 1970, and states change only in ``advance(now:)``: a
/// clock that goes back never moves a key out of use or back into it, and a late call only keeps
/// the current key in use for longer.
package struct KeyRing: Sendable, Equatable {
    /// The durations of the overlap between keys, seconds.
    package struct Timing: Sendable, Equatable {
        /// The time that a key is published before it signs; verifiers must not cache a key set for
        /// longer.
        package let publishLead: Int64
        /// The longest time from `iat` to `exp` of anything a key of the ring signs: notifications,
        /// and tokens if the ring signs those too.
        package let signatureLifetime: Int64

        /// Creates timing; negative durations count as zero.
        package init(publishLead: Int64 = 300, signatureLifetime: Int64) {
            self.publishLead = max(0, publishLead)
            self.signatureLifetime = max(0, signatureLifetime)
        }

        /// The `max-age` of the published set: a tenth below the lead, to allow for the time
        /// between a key's publication and the first response that contains it.
        package var keySetMaxAge: Int64 { publishLead - publishLead / 10 }
    }

    /// The state of a key. A retired key is no longer in the ring.
    package enum State: Sendable, Equatable {
        /// The key is published and does not sign yet.
        ///
        /// Can transition to: `signing` at `from`.
        case published(from: Int64)
        /// The key signs everything; exactly one key of a ring is in this state.
        ///
        /// Can transition to: `retiring` when a newer key begins to sign.
        case signing(since: Int64)
        /// The key no longer signs, but messages it signed are still valid.
        ///
        /// Can transition to: retired (leaves the ring) at `until`.
        case retiring(until: Int64)
    }

    package struct Entry: Sendable, Equatable {
        package let key: SigningKey
        package internal(set) var state: State
    }

    /// The maximum number of keys in a ring. Rotating faster than keys retire is a mistake, and
    /// verifiers would have to read an unbounded key set.
    package static let keysMax = 16

    /// The durations of the overlap between keys.
    package let timing: Timing
    /// The signing key with its state.
    package private(set) var signing: Entry
    /// The keys that are published but do not sign, in the order in which they were added.
    package private(set) var others: [Entry]

    /// Creates a ring. Its only key signs at once, because no verifier can have cached an older
    /// set.
    package init(first key: SigningKey, timing: Timing, now: Int64) {
        self.timing = timing
        signing = Entry(key: key, state: .signing(since: now))
        others = []
    }

    /// Restores a stored ring; the caller ensures that `signing` signs and `others` do not.
    init(signing: Entry, others: [Entry], timing: Timing) {
        self.timing = timing
        self.signing = signing
        self.others = others
    }

    package var signingKey: SigningKey { signing.key }

    /// The keys whose signatures may occur now or soon, for `/.well-known/jwks.json`.
    package var publishedKeys: JWKSet {
        JWKSet(([signing] + others).map(\.key.publicKey))
    }

    /// The time in which repeated rotations to the same algorithm count as one, seconds: two timers
    /// that fire together, or a command repeated because its response was lost.
    package static let sameMomentSeconds: Int64 = 10

    /// Returns whether a rotation to `algorithm` was made within that time.
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

    /// Publishes a new key, which signs after ``Timing/publishLead``. Throws ``SigningError``
    /// (`limitExceeded`) when the ring has ``keysMax`` keys.
    package mutating func rotate(now: Int64, newKey: SigningKey) throws(SigningError) {
        guard others.count + 1 < Self.keysMax else {
            throw SigningError(
                .limitExceeded, "the key ring has \(Self.keysMax) keys; wait until one retires")
        }
        let from = now.addingClamped(timing.publishLead)
        others.append(Entry(key: newKey, state: .published(from: from)))
    }

    /// Applies every change of state that is due at `now`. Returns the retired keys, which have
    /// left the ring: the caller removes their files.
    package mutating func advance(now: Int64) -> [SigningKey] {
        let due = others.filter { entry in
            if case .published(let from) = entry.state { from <= now } else { false }
        }
        for entry in due {
            // This includes a key that an even newer one replaces at once, because another user of
            // the ring may have signed with it in between.
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
    /// Returns the sum, saturating on overflow; such a time is never reached anyway.
    func addingClamped(_ other: Int64) -> Int64 {
        let (sum, hasOverflown) = addingReportingOverflow(other)
        guard hasOverflown else { return sum }
        return other > 0 ? .max : .min
    }
}
