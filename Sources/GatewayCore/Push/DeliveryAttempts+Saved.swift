import WidgetModel

extension DeliveryAttempts {
    /// Attempts as they are persisted. What was under way is not: it is pushed again.
    package struct Saved: Sendable, Hashable {
        /// When, in milliseconds since 1970.
        package var savedAt: Int64
        /// The latest change that concerns the client.
        package var latest: UInt64
        /// Everything up to here was confirmed.
        package var confirmed: UInt64
        /// 0...3, from very low to high.
        package var urgency: UInt8
        /// Whether the client ever polled or acknowledged.
        package var isKnownToAnswer: Bool
        /// For how much longer the push is spread, in milliseconds.
        package var held: Int64
        /// For how much longer a stream, or a client whose stream ended, has its chance, in
        /// milliseconds.
        package var grace: Int64
        /// The addresses, in the order of preference.
        package var addresses: [SavedAddress]

        /// What was persisted.
        package init(
            savedAt: Int64, latest: UInt64, confirmed: UInt64, urgency: UInt8,
            isKnownToAnswer: Bool, held: Int64, grace: Int64, addresses: [SavedAddress]
        ) {
            self.savedAt = savedAt
            self.latest = latest
            self.confirmed = confirmed
            self.urgency = urgency
            self.isKnownToAnswer = isKnownToAnswer
            self.held = held
            self.grace = grace
            self.addresses = addresses
        }
    }

    /// An address as it is persisted.
    package struct SavedAddress: Sendable, Hashable {
        /// Stands for the address.
        package var id: UInt64
        /// Everything up to here was said by a push that was taken.
        package var delivered: UInt64
        /// From where the last push that was taken spoke.
        package var spokeSince: UInt64
        /// Up to here no push is made again.
        package var givenUp: UInt64
        /// Failures in a row.
        package var failures: Int
        /// Pushes made again since the client was last heard of.
        package var repeats: Int
        /// Whether the client was not heard of since the last push that was taken.
        package var awaitsSign: Bool
        /// Whether it may be pushed to.
        package var isUsable: Bool
        /// How long it is not pushed to after a failure, in milliseconds.
        package var wait: Int64
        /// How long the client has to be heard of, in milliseconds.
        package var repeatWait: Int64

        /// What was persisted.
        package init(
            id: UInt64, delivered: UInt64, spokeSince: UInt64, givenUp: UInt64, failures: Int,
            repeats: Int, awaitsSign: Bool, isUsable: Bool, wait: Int64, repeatWait: Int64
        ) {
            self.id = id
            self.delivered = delivered
            self.spokeSince = spokeSince
            self.givenUp = givenUp
            self.failures = failures
            self.repeats = repeats
            self.awaitsSign = awaitsSign
            self.isUsable = isUsable
            self.wait = wait
            self.repeatWait = repeatWait
        }
    }

    /// The attempts to be persisted.
    package func saved(now: Int64, wall: Int64) -> Saved {
        Saved(
            savedAt: wall, latest: latest, confirmed: confirmed, urgency: urgency.rank,
            isKnownToAnswer: isKnownToAnswer, held: heldUntil.elapsed(since: now),
            grace: graceLeft(now: now),
            addresses: addresses.map {
                SavedAddress(
                    id: $0.id, delivered: $0.delivered, spokeSince: $0.spokeSince,
                    givenUp: $0.givenUp, failures: $0.failures, repeats: $0.repeats,
                    awaitsSign: $0.awaitsSign,
                    isUsable: $0.isUsable, wait: $0.notBefore.elapsed(since: now),
                    repeatWait: $0.repeatAt.elapsed(since: now))
            })
    }

    private func graceLeft(now: Int64) -> Int64 {
        guard streams == 0 else { return Self.grace }
        let end = max(graceUntil, carried.last?.until ?? .min)
        return min(Self.grace, end.elapsed(since: now))
    }

    /// The attempts that were persisted. All streams ended with the program that had them, so
    /// who had one has the time of grace to come back. No wait is longer than a day.
    package init(_ saved: Saved, now: Int64, wall: Int64) {
        let away = TimeAway.between(saved.savedAt, wall)
        func end(of wait: Int64) -> Int64 {
            let left = min(max(wait, 0), TimeAway.longest) - away
            return left > 0 ? now.later(by: left) : .min
        }
        latest = saved.latest
        confirmed = saved.confirmed
        urgency = Urgency(rank: saved.urgency)
        isKnownToAnswer = saved.isKnownToAnswer
        heldUntil = end(of: saved.held)
        if saved.grace > 0 { graceUntil = now.later(by: min(saved.grace, Self.grace)) }
        pendingSince = now
        uncarried = latest
        addresses = saved.addresses.map {
            var address = Address(id: $0.id)
            address.delivered = $0.delivered
            address.spokeSince = $0.spokeSince
            address.givenUp = $0.givenUp
            address.failures = min(max($0.failures, 0), 1_000)
            address.repeats = min(max($0.repeats, 0), Self.repeatsMax)
            address.awaitsSign = $0.awaitsSign
            address.isUsable = $0.isUsable
            address.notBefore = end(of: $0.wait)
            address.repeatAt = end(of: $0.repeatWait)
            return address
        }
    }
}
