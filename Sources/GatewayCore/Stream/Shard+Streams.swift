extension Shard {
    /// Returns everything that is stale for a client now; `nil` for an app without a catalog.
    package func poll(
        _ record: ClientRecord, app: String, since point: ResumePoint, kinds: Set<String>?
    ) -> StaleSet? {
        number(ofApp: app).map {
            staleness($0).stale(
                for: apps[$0].ruleSet.holdings(of: record, kinds: kinds), since: point,
                isNarrowed: kinds != nil, confirmed: record.confirmed, at: position)
        }
    }

    /// Opens a stream. If anything became stale since `point`, the catch-up is in ``output``.
    ///
    /// - Returns: `nil` for an app without a catalog.
    package mutating func open(
        _ record: ClientRecord, app name: String, since point: ResumePoint, kinds: Set<String>?
    ) -> StreamID? {
        guard let app = number(ofApp: name) else { return nil }
        let slot: UInt32
        if let free = freeSlots.popLast() {
            slot = free
        } else {
            slot = UInt32(truncatingIfNeeded: streams.count)
            streams.append(StreamRecord())
            subscriptions.append(nil)
        }
        let index = Int(slot)
        streams[index].serial &+= 1
        streams[index].generation &+= 1
        streams[index].isLagging = false
        streams[index].last = -1
        if case .after(let sequence) = point {
            // The client may be ahead of this shard, after receiving from a faster one. Entries up
            // to that sequence have then been sent already, and the id must not go back.
            streams[index].watermark = sequence
            streams[index].covered = sequence
        } else {
            streams[index].watermark = 0
            streams[index].covered = 0
        }
        subscriptions[index] = StreamSubscription(
            record: record, app: app, kinds: kinds, openedAt: position,
            place: UInt32(apps[app].streams.count),
            previous: apps[app].clients.updateValue(slot, forKey: record.client))
        apps[app].streams.append(slot)
        openStreams += 1
        if let holdings = holdings(of: slot, app) {
            insertKeys(of: slot, app, holdings)
            catchUp(slot, since: point, holdings, includingOwed: true)
        }
        return StreamID(slot: slot, serial: streams[index].serial)
    }

    /// Removes a closed stream.
    package mutating func close(_ id: StreamID) {
        let index = Int(id.slot)
        guard isOpen(id), let subscription = subscriptions[index] else { return }
        let app = subscription.app
        removeKeys(of: id.slot, app)
        let last = apps[app].streams.removeLast()
        if last != id.slot {
            apps[app].streams[Int(subscription.place)] = last
            subscriptions[Int(last)]?.place = subscription.place
        }
        unlink(id.slot, subscription, app)
        subscriptions[index] = nil
        streams[index].isLagging = false
        openStreams -= 1
        freeSlots.append(id.slot)
        freeIfOver(app)
    }

    package func isOpen(_ id: StreamID) -> Bool {
        let index = Int(id.slot)
        return index < streams.count && streams[index].serial == id.serial
            && subscriptions[index] != nil
    }

    /// Records that the stream could not take data sent after `sequence`. Nothing more is sent
    /// until ``recovered(_:)``.
    package mutating func lagging(_ id: StreamID, since sequence: UInt64) {
        guard isOpen(id) else { return }
        streams[Int(id.slot)].isLagging = true
        streams[Int(id.slot)].watermark = sequence
    }

    /// Records that the stream accepts data again; sends one catch-up since its last id.
    package mutating func recovered(_ id: StreamID) {
        guard isOpen(id), streams[Int(id.slot)].isLagging else { return }
        streams[Int(id.slot)].isLagging = false
        let watermark = streams[Int(id.slot)].watermark
        // The data that was not taken may have contained sets that are still owed.
        catchUp(
            id.slot, since: watermark == 0 ? .everything : .after(watermark), includingOwed: true)
    }

    /// Returns the id for the heartbeat of an idle stream; `nil` when the stream is closed or lags,
    /// because its id must not advance then.
    package mutating func heartbeat(_ id: StreamID) -> UInt64? {
        let index = Int(id.slot)
        guard isOpen(id), !streams[index].isLagging, let subscription = subscriptions[index],
            !subscription.isEnded
        else { return nil }
        let sent = streams[index].own(watermarks(subscription.app, upTo: position))
        streams[index].watermark = max(streams[index].watermark, streams[index].covered, sent)
        return streams[index].watermark
    }

    /// Removes a closing stream from the list of its client's streams.
    private mutating func unlink(
        _ slot: UInt32, _ subscription: StreamSubscription, _ app: Int
    ) {
        let client = subscription.record.client
        guard var later = apps[app].clients[client] else { return }
        if later == slot {
            apps[app].clients[client] = subscription.previous
            return
        }
        while let previous = subscriptions[Int(later)]?.previous, previous != slot {
            later = previous
        }
        subscriptions[Int(later)]?.previous = subscription.previous
    }

    /// Returns the slots of a client's open streams in the order in which they were opened, without
    /// those about to be closed.
    func slots(ofClient client: String, _ app: Int) -> [UInt32] {
        var slots: [UInt32] = []
        var next = apps[app].clients[client]
        while let slot = next {
            let subscription = subscriptions[Int(slot)]
            if subscription?.isEnded == false { slots.append(slot) }
            next = subscription?.previous
        }
        return slots.reversed()
    }

    // MARK: Registrations

    /// Applies a new registration of a client to its open streams.
    ///
    /// - Parameter record: The registration in force, which may be newer than the one in the
    ///   message. Streams that were opened with it continue unchanged.
    package mutating func registered(_ record: ClientRecord, app name: String) {
        guard let app = number(ofApp: name) else { return }
        for slot in slots(ofClient: record.client, app) {
            guard let held = subscriptions[Int(slot)]?.record, held !== record else { continue }
            removeKeys(of: slot, app)
            subscriptions[Int(slot)]?.record = record
            guard let holdings = holdings(of: slot, app) else { continue }
            insertKeys(of: slot, app, holdings)
            // The last sent id also serves as the cursor for the new subscriptions. A lagging
            // stream catches up when it recovers.
            let watermark = streams[Int(slot)].watermark
            catchUp(slot, since: watermark == 0 ? .everything : .after(watermark), holdings)
        }
    }

    /// Applies a client's confirmation of recommendation sets. Its dependencies are unchanged.
    package mutating func confirmed(_ record: ClientRecord, app name: String) {
        guard let app = number(ofApp: name) else { return }
        for slot in slots(ofClient: record.client, app) {
            guard let held = subscriptions[Int(slot)]?.record else { continue }
            // Only the confirmation is applied: the stream may have been opened with a later
            // registration than the confirmed one, and its keys are in the index.
            subscriptions[Int(slot)]?.record = held.with(
                confirmed: held.confirmed.merging(record.confirmed) { max($0, $1) })
        }
    }

    /// Ends the streams of a removed client. Entries after the removal are not sent on them,
    /// because some close only later.
    package mutating func removed(client: String, app name: String) {
        guard let app = number(ofApp: name) else { return }
        for slot in slots(ofClient: client, app) {
            removeKeys(of: slot, app)
            end(slot)
        }
    }

    /// Requests the caller to close a stream, which depends on nothing from now on.
    mutating func end(_ slot: UInt32) {
        guard subscriptions[Int(slot)]?.isEnded == false else { return }
        subscriptions[Int(slot)]?.isEnded = true
        output.ended.append(StreamID(slot: slot, serial: streams[Int(slot)].serial))
    }

    mutating func insertKeys(of slot: UInt32, _ app: Int, _ holdings: ClientSubscriptions) {
        let holder = SubscriptionIndex.Subscriber(
            stream: slot, generation: streams[Int(slot)].generation)
        let rules = apps[app].ruleSet.rules
        var waitingKeys: UInt32 = 0
        for dependency in holdings.dependencies where dependency.rule < rules.count {
            apps[app].index.insert(holder, rule: dependency.rule, values: dependency.values)
            guard apps[app].collapse.oldestWaiting != nil else { continue }
            rules[dependency.rule].visitKeys(reaching: dependency.values) { key in
                let window = apps[app].collapse.window(key, rule: dependency.rule)
                if window?.firstWaiting != nil { waitingKeys += 1 }
            }
        }
        streams[Int(slot)].waitingKeys = waitingKeys
    }

    private mutating func removeKeys(of slot: UInt32, _ app: Int) {
        guard let holdings = holdings(of: slot, app) else { return }
        streams[Int(slot)].generation &+= 1
        let ruleCount = apps[app].ruleSet.rules.count
        for dependency in holdings.dependencies where dependency.rule < ruleCount {
            apps[app].index.end(rule: dependency.rule, values: dependency.values) {
                streams[Int($0.stream)].generation == $0.generation
            }
        }
    }
}
