import WidgetModel

/// The outcome of a change for one item that it makes stale. It depends only on the sequences up to
/// which changes were confirmed, sent and delivered. Times are on the caller's monotonic clock, ms.
package enum Outcome: Sendable, Hashable {
    /// The client confirmed that it applied the change.
    case confirmed
    /// The change was sent and is not confirmed.
    case sent(NotificationChannel)
    /// The notification of this later change of the same collapse window covered it.
    case collapsed(into: UInt64)
    /// The change will be sent later.
    case withheld(Reason, until: Int64?)
    /// The change cannot be sent before the client connects.
    case unreachable(Absence)

    /// Why something goes out later.
    package enum Reason: String, Sendable, Hashable, CaseIterable {
        /// The collapse window of the key has not ended.
        case collapse
        /// The stream currently takes no data.
        case slowReader = "slow-reader"
        /// A push is in flight.
        case underWay = "under-way"
        /// Too many pushes are in flight.
        case queue
        /// A stream is given time to confirm first.
        case grace
        /// The change affects many devices and is spread over time.
        case spread
        /// The address failed, and will be retried.
        case retry
        /// The device's budget is used up.
        case budget
        /// The kind was pushed too recently.
        case interval
        /// The push service rejects the credential or topic until the configuration changes.
        case stopped
        /// The source of an activity's content fails, and will be asked again.
        case content
    }

    /// The reason why a change cannot be sent.
    package enum Absence: String, Sendable, Hashable, CaseIterable {
        /// The client has neither a stream nor a matching address; it is notified when it connects.
        case awaitsClient = "awaits-client"
        /// The same, but the client made no contact since the start: its progress is unknown.
        case unknownSinceStart = "unknown-since-start"
        /// The push was rejected permanently.
        case refused
        /// No address accepts pushes: the tokens are dead or quarantined.
        case deadAddress = "dead-address"
        case disabledWebhook = "disabled-webhook"
        /// The activity has ended.
        case ended
    }

    /// Determines the outcome of the change at `sequence` for an item of a client.
    ///
    /// - Parameters:
    ///   - stream: The delivery state on its open streams; `nil` without a stream.
    ///   - push: The outcome of its pushes; `nil` when none are sent for it.
    package init(
        of sequence: UInt64, for item: Subscription, of record: ClientRecord,
        _ hearing: DeliveryProgress,
        stream: StreamDeliveryState?, push: Self?
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

    /// Predicts the outcome of a hypothetical change for an item of a client.
    ///
    /// - Parameters:
    ///   - stream: The predicted delivery state on its open streams; `nil` without a stream.
    ///   - push: The predicted outcome of its pushes; `nil` when none are sent for it.
    package init(forecast stream: StreamDeliveryState?, push: Self?) {
        switch stream {
        case .sent?, .collapsed?: self = .sent(.stream)
        case .waits(let until)?: self = .withheld(.collapse, until: until)
        case .lagging?: self = .withheld(.slowReader, until: nil)
        case nil: self = push ?? .unreachable(.awaitsClient)
        }
    }
}

/// The delivery state of a change on a client's open streams.
package enum StreamDeliveryState: Sendable, Hashable {
    /// The change was sent.
    case sent
    /// The notification of a later change of its collapse window covers it.
    case collapsed(into: UInt64)
    /// The change waits for the end of its collapse window, at this monotonic time, ms.
    case waits(until: Int64)
    /// The stream takes no data; the change is sent when it recovers.
    case lagging

    /// Returns the delivery state that is further advanced.
    package func sooner(_ other: StreamDeliveryState?) -> StreamDeliveryState {
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
