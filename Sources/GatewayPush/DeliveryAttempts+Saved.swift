import GatewayCore
import WidgetModel

extension DeliveryAttempts {
    /// The persisted form of delivery attempts. Pushes in flight are not included: they are sent
    /// again.
    package struct Saved: Sendable, Hashable {
        /// The time of saving, ms since 1970.
        package var savedAt: Int64
        /// The latest change that affects the client.
        package var latest: UInt64
        /// The sequence up to which everything was confirmed.
        package var confirmed: UInt64
        /// The sequence up to which nothing was owed when the oldest unreported change came.
        package var told: UInt64
        /// The urgency as a number: 0...3, from very low to high.
        package var urgency: UInt8
        /// Whether the client ever polled or acknowledged.
        package var isKnownToAnswer: Bool
        /// The remaining delay of a push that is spread, ms.
        package var held: Int64
        /// The remaining grace period for a stream, or for a client whose stream ended, ms.
        package var grace: Int64
        /// The addresses in order of preference.
        package var addresses: [SavedAddress]
        /// The timestamp of the last push, if its content has one.
        package var stamp: Int64
        /// The oldest accepted start whose activity may still be registered; 0 for none.
        package var startedSince: UInt64

        package init(
            savedAt: Int64, latest: UInt64, confirmed: UInt64, told: UInt64, urgency: UInt8,
            isKnownToAnswer: Bool, held: Int64, grace: Int64, addresses: [SavedAddress],
            stamp: Int64 = 0, startedSince: UInt64 = 0
        ) {
            self.savedAt = savedAt
            self.latest = latest
            self.confirmed = confirmed
            self.told = told
            self.urgency = urgency
            self.isKnownToAnswer = isKnownToAnswer
            self.held = held
            self.grace = grace
            self.addresses = addresses
            self.stamp = stamp
            self.startedSince = startedSince
        }
    }

    /// The persisted form of an address.
    package struct SavedAddress: Sendable, Hashable {
        /// The hash that identifies the address.
        package var id: UInt64
        /// The sequence up to which everything was delivered by accepted pushes.
        package var delivered: UInt64
        /// The sequence after which the last accepted push reported changes.
        package var spokeSince: UInt64
        /// The sequence up to which no push is repeated.
        package var givenUp: UInt64
        /// The number of consecutive failures.
        package var failures: Int
        /// The number of repeated pushes since the client's last contact.
        package var repeats: Int
        /// Whether the client has not been in contact since the last accepted push.
        package var awaitsSign: Bool
        /// Whether pushes to it are allowed.
        package var isUsable: Bool
        /// Whether an accepted push ended the Live Activity there.
        package var hasEnded: Bool
        /// The remaining wait after a failure, ms.
        package var wait: Int64
        /// The remaining time for the client to make contact, ms.
        package var repeatWait: Int64

        package init(
            id: UInt64, delivered: UInt64, spokeSince: UInt64, givenUp: UInt64, failures: Int,
            repeats: Int, awaitsSign: Bool, isUsable: Bool, hasEnded: Bool = false, wait: Int64,
            repeatWait: Int64
        ) {
            self.id = id
            self.delivered = delivered
            self.spokeSince = spokeSince
            self.givenUp = givenUp
            self.failures = failures
            self.repeats = repeats
            self.awaitsSign = awaitsSign
            self.isUsable = isUsable
            self.hasEnded = hasEnded
            self.wait = wait
            self.repeatWait = repeatWait
        }
    }

    /// More pushes than are made before their timestamps are stored.
    static let stampsUnsaved: Int64 = 60

    /// Returns the attempts in persisted form.
    package func saved(now: Int64, wall: Int64) -> Saved {
        Saved(
            savedAt: wall, latest: latest, confirmed: confirmed, told: told, urgency: urgency.rank,
            isKnownToAnswer: isKnownToAnswer, held: heldUntil.elapsed(since: now),
            grace: graceLeft(now: now),
            addresses: addresses.map {
                SavedAddress(
                    id: $0.id, delivered: $0.delivered, spokeSince: $0.spokeSince,
                    givenUp: $0.givenUp, failures: $0.failures, repeats: $0.repeats,
                    awaitsSign: $0.awaitsSign, isUsable: $0.isUsable, hasEnded: $0.hasEnded,
                    wait: $0.notBefore.elapsed(since: now),
                    repeatWait: $0.repeatAt.elapsed(since: now))
            }, stamp: stamp, startedSince: startedSince)
    }

    private func graceLeft(now: Int64) -> Int64 {
        guard streams == 0 else { return Self.grace }
        let end = max(graceUntil, carried.last?.until ?? .min)
        return min(Self.grace, end.elapsed(since: now))
    }

    /// Restores persisted attempts. All streams ended with the previous process, so a client that
    /// had one gets the grace period to reconnect. No wait is longer than a day.
    package init(_ saved: Saved, now: Int64, wall: Int64) {
        let away = TimeAway.between(saved.savedAt, wall)
        func end(of wait: Int64) -> Int64 {
            let left = min(max(wait, 0), TimeAway.longest) - away
            return left > 0 ? now.later(by: left) : .min
        }
        latest = saved.latest
        confirmed = saved.confirmed
        told = saved.told
        urgency = Urgency(rank: saved.urgency)
        isKnownToAnswer = saved.isKnownToAnswer
        heldUntil = end(of: saved.held)
        if saved.grace > 0 { graceUntil = now.later(by: min(saved.grace, Self.grace)) }
        pendingSince = now
        uncarried = latest
        startedSince = saved.startedSince
        stamp = saved.stamp > 0 ? saved.stamp.later(by: Self.stampsUnsaved) : 0
        addresses = saved.addresses.map {
            var address = Address(id: $0.id)
            address.delivered = $0.delivered
            address.spokeSince = $0.spokeSince
            address.givenUp = $0.givenUp
            address.failures = min(max($0.failures, 0), 1_000)
            address.repeats = min(max($0.repeats, 0), Self.repeatsMax)
            address.awaitsSign = $0.awaitsSign
            address.isUsable = $0.isUsable
            address.hasEnded = $0.hasEnded
            address.notBefore = end(of: $0.wait)
            address.repeatAt = end(of: $0.repeatWait)
            return address
        }
    }
}
