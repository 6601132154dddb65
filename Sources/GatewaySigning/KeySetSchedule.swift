import WidgetModel

/// Decides when the key set of an issuer is fetched from its URL. All times are in seconds of one
/// clock that never goes back.
package struct KeySetSchedule: Sendable, Equatable {
    private enum State: Equatable {
        case waiting(until: Int64)
        case fetching
    }

    /// The age at which a set without `max-age` is fetched again.
    package static let ageDefault: Int64 = 300
    /// The limits of the age that a response may ask for: neither may an issuer be asked all the
    /// time, nor may a key that it has withdrawn be accepted for days.
    package static let ages: ClosedRange<Int64> = 60...86_400
    /// The minimum time between two fetches for tokens that name unknown keys: anybody may send
    /// such tokens.
    package static let missingKeyInterval: Int64 = 30

    private var state: State
    private var lastBegan: Int64?
    private var backoff = Backoff(first: 5, longest: 300, jitter: .half)

    /// Creates a schedule whose first fetch is due at `now`.
    package init(now: Int64) {
        state = .waiting(until: now)
    }

    /// Whether the last fetch failed.
    package var isFailing: Bool { backoff.failures > 0 }

    /// Begins a fetch if one is due. Returns whether the caller has to fetch, and then call
    /// ``succeeded(maxAge:now:)`` or ``failed(now:random:)``.
    package mutating func begin(now: Int64) -> Bool {
        guard case .waiting(let time) = state, time <= now else { return false }
        state = .fetching
        lastBegan = now
        return true
    }

    /// Records a fetched set. `maxAge` is the response's `max-age` (RFC 9111 section 5.2.2.1).
    package mutating func succeeded(maxAge: Int64?, now: Int64) {
        backoff.succeeded()
        let age = min(max(maxAge ?? Self.ageDefault, Self.ages.lowerBound), Self.ages.upperBound)
        state = .waiting(until: now.addingClamped(age))
    }

    /// Records that a fetch failed: the next one follows sooner, and later each time.
    package mutating func failed(now: Int64, random: UInt64) {
        state = .waiting(until: now.addingClamped(backoff.failed(random: random)))
    }

    /// Makes the next fetch due at once if the last one failed, as after a change of configuration.
    /// No effect while a fetch is in flight.
    package mutating func retry(now: Int64) {
        guard isFailing, case .waiting = state else { return }
        state = .waiting(until: now)
    }

    /// Records that a token named a key that the set does not have: it may have been published
    /// since. No effect while a fetch is in flight.
    package mutating func missesKey(now: Int64) {
        guard case .waiting(let time) = state else { return }
        let earliest = lastBegan.map { $0.addingClamped(Self.missingKeyInterval) } ?? now
        state = .waiting(until: min(time, max(now, earliest)))
    }
}
