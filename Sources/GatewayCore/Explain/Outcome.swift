/// What became of a change for one thing that it makes stale; each such thing has exactly one.
///
/// It follows from levels alone: what was confirmed, said and delivered up to where. Moments are the
/// caller's monotonic milliseconds.
package enum Outcome: Sendable, Hashable {
    /// The client has applied it, by its own word.
    case confirmed
    /// It was said, and is not confirmed.
    case sent(Channel)
    /// The notification of this later change of its collapse window has said it.
    case collapsed(into: UInt64)
    /// It goes out later.
    case withheld(Reason, until: Int64?)
    /// Nothing can be done before the client comes.
    case unreachable(Absence)

    /// How something is said.
    package enum Channel: String, Sendable, Hashable, CaseIterable {
        /// A held-open stream.
        case stream
        /// A poll.
        case poll
        /// APNs, timelines.
        case widgets
        /// APNs, controls.
        case controls
        /// APNs, waking the app.
        case background
        /// A webhook.
        case webhook
    }

    /// Why something goes out later.
    package enum Reason: String, Sendable, Hashable, CaseIterable {
        /// It waits for the end of its collapse window.
        case collapse
        /// The stream takes no bytes at the moment.
        case slowReader = "slow-reader"
        /// A push is being made.
        case underWay = "under-way"
        /// As many pushes are under way as may be.
        case queue
        /// A stream has its chance first.
        case grace
        /// The change concerns many devices and is spread.
        case spread
        /// The address failed, and is tried again.
        case retry
        /// The device's budget is used up.
        case budget
        /// The kind was pushed for a moment ago.
        case interval
        /// The push service refuses the credential or topic; until a configuration changes.
        case stopped
    }

    /// Why nothing can be done.
    package enum Absence: String, Sendable, Hashable, CaseIterable {
        /// It has no stream, and no address for this: it hears of it when it comes.
        case awaitsClient = "awaits-client"
        /// The same, and it was not heard of since the gateway started, which knows not more.
        case unknownSinceStart = "unknown-since-start"
        /// The push was refused for good.
        case refused
        /// No address may be pushed to: tokens are dead or in quarantine.
        case deadAddress = "dead-address"
        /// The webhook is disabled.
        case disabledWebhook = "disabled-webhook"
    }

    /// What became of the change at `sequence` for something of a client.
    ///
    /// - Parameters:
    ///   - stream: What its open streams say of it; `nil` without one.
    ///   - push: How its pushes stand; `nil` where none are made for it.
    package init(
        of sequence: UInt64, for item: HeldItem, of record: ClientRecord, _ hearing: Hearing,
        stream: Telling?, push: Self?
    ) {
        let isConfirmed =
            item.isSet
            ? record.confirmed[item.kind] ?? 0 >= sequence
            : hearing.confirmed >= sequence || push == .confirmed
        if isConfirmed {
            self = .confirmed
        } else if stream == .sent || hearing.streamed(item.kind) >= sequence {
            self = .sent(.stream)
        } else if hearing.polled(item.kind) >= sequence {
            self = .sent(.poll)
        } else if case .collapsed(let into)? = stream {
            self = .collapsed(into: into)
        } else if case .sent? = push {
            self = push ?? .confirmed
        } else if case .waits(let until)? = stream {
            self = .withheld(.collapse, until: until)
        } else if stream == .lagging {
            self = .withheld(.slowReader, until: nil)
        } else if let push, push != .confirmed {
            self = push
        } else {
            self = .unreachable(hearing.isHeardOf ? .awaitsClient : .unknownSinceStart)
        }
    }

    /// What would become of a change that is not made, for something of a client.
    ///
    /// - Parameters:
    ///   - stream: What its open streams would do; `nil` without one.
    ///   - push: What the pushes would; `nil` where none are made for it.
    package init(forecast stream: Telling?, push: Self?) {
        switch stream {
        case .sent?, .collapsed?: self = .sent(.stream)
        case .waits(let until)?: self = .withheld(.collapse, until: until)
        case .lagging?: self = .withheld(.slowReader, until: nil)
        case nil: self = push ?? .unreachable(.awaitsClient)
        }
    }
}

/// What a client's open streams say of a change.
package enum Telling: Sendable, Hashable {
    /// It was sent.
    case sent
    /// The notification of a later change of its collapse window has said it.
    case collapsed(into: UInt64)
    /// It waits for the end of its collapse window, at that moment of monotonic milliseconds.
    case waits(until: Int64)
    /// The stream takes no bytes; it will be told when it does.
    case lagging

    /// Which of two says it sooner.
    package func sooner(_ other: Telling?) -> Telling {
        guard let other else { return self }
        switch (self, other) {
        case (.sent, _), (_, .lagging): return self
        case (_, .sent), (.lagging, _): return other
        case (.collapsed(let own), .collapsed(let their)): return own <= their ? self : other
        case (.collapsed, _): return self
        case (_, .collapsed): return other
        case (.waits(let own), .waits(let their)): return own <= their ? self : other
        }
    }
}
