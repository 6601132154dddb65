import WidgetModel

extension Shard {
    /// Notifies the holders of keys whose collapse windows ended. Keys with the same name share one
    /// notification, and a stream that holds several of them gets it once.
    mutating func send(_ keys: [CollapseWindow.Due], _ app: Int, _ watermarks: Watermarks) {
        guard !keys.isEmpty else { return }
        for due in keys {
            // The last frame of the batch for a stream has the id that is right after all of them.
            apps[app].index.visitHolders(rule: due.key.rule, values: due.key.values) {
                streams.addWaitingKeys(-1, to: $0)
            }
            notified.note(
                apps[app].ruleSet.recentKey(due.key.values.hash),
                .init(sequence: due.sequence, acceptedAt: due.acceptedAt))
        }
        let batch = output.nextFrame
        let rules = apps[app].ruleSet.rules
        let names = keys.map { rules[$0.key.rule].name(of: $0.key.values) }
        for (name, places) in Self.named(names) {
            let sequence = places.reduce(0) { max($0, keys[$1].sequence) }
            let accepted = places.reduce(Int64.max) { min($0, keys[$1].acceptedAt) }
            var frame = ShardOutput.Frame(
                app: apps[app].name, content: StaleSet([name], sequence: sequence), cause: nil,
                acceptedAt: accepted)
            frame.urgency = places.map { keys[$0].urgency }.max { $0.rank < $1.rank }
            write(frame, app, upTo: watermarks, batch: batch) { index, visit in
                for place in places {
                    let due = keys[place]
                    index.visitHolders(rule: due.key.rule, values: due.key.values) {
                        visit($0, due.sequence)
                    }
                }
            }
        }
    }

    /// Notifies the holders of the keys of one change.
    mutating func send(
        _ keys: InvalidatedKeys, _ firing: [FiringKey], _ app: Int, sequence: UInt64,
        cause: ChangeCause?, acceptedAt: Int64
    ) {
        // The streams are fetched from memory while the frame is made.
        for key in firing { apps[app].index.prefetchStreams(rule: key.rule, key.reach, streams) }
        let batch = output.nextFrame
        let sent = watermarks(app, upTo: sequence)
        let rules = apps[app].ruleSet.rules
        func notify(_ name: InvalidationTarget, _ firing: ArraySlice<FiringKey>) {
            let frame = ShardOutput.Frame(
                app: apps[app].name, content: StaleSet([name], sequence: sequence),
                cause: cause, acceptedAt: acceptedAt)
            write(frame, app, upTo: sent, batch: batch) { index, visit in
                for (place, rule, reach) in firing {
                    keys.withEncoded(place) { key in
                        index.visitHolders(rule: rule, key, reach) { visit($0, sequence) }
                    }
                }
            }
        }
        func name(of key: FiringKey) -> InvalidationTarget {
            keys.withEncoded(key.place) { rules[key.rule].name(of: $0.bytes) }
        }
        guard firing.count > 1 else { return notify(name(of: firing[0]), firing[...]) }
        for (name, places) in Self.named(firing.map(name)) {
            notify(name, places.map { firing[$0] }[...])
        }
    }

    /// Returns each name once, in the order of first occurrence, with its indices.
    private static func named(_ names: [InvalidationTarget]) -> [(
        name: InvalidationTarget, places: [Int]
    )] {
        // Comparing a few names is faster than hashing them.
        let isHashed = names.count > 8
        var known: [InvalidationTarget: Int] = [:]
        var result: [(name: InvalidationTarget, places: [Int])] = []
        for (place, name) in names.enumerated() {
            if let index = isHashed ? known[name] : result.firstIndex(where: { $0.name == name }) {
                result[index].places.append(place)
            } else {
                if isHashed { known[name] = result.count }
                result.append((name, [place]))
            }
        }
        return result
    }

    /// Delivers a frame to the holders that `visitAll` visits in the index, each with the latest
    /// change to its key. A stream gets the frame once. A frame without deliveries is not added to
    /// the output.
    @inline(__always)
    private mutating func write(
        _ frame: ShardOutput.Frame, _ app: Int, upTo watermarks: Watermarks, batch: Int32,
        _ visitAll: (
            inout SubscriptionIndex,
            (UnsafeBufferPointer<SubscriptionIndex.Subscriber>, _ changed: UInt64) -> Void
        ) -> Void
    ) {
        let isDelivered = Self.write(
            watermarks: watermarks, batch: batch, index: &apps[app].index, streams: &streams,
            to: &output, visitAll: visitAll)
        if isDelivered { output.add(frame) }
    }

    /// Returns whether any stream got the frame that is added to `output` next.
    @inline(__always)
    private static func write(
        watermarks: Watermarks, batch: Int32, index: inout SubscriptionIndex,
        streams: inout [StreamRecord], to output: inout ShardOutput,
        visitAll: (
            inout SubscriptionIndex,
            (UnsafeBufferPointer<SubscriptionIndex.Subscriber>, _ changed: UInt64) -> Void
        ) -> Void
    ) -> Bool {
        DeliveryWriter.write(watermarks: watermarks, batch: batch, to: &output) { writer in
            // Sound: the buffer is used within the closure that lends it, after a bounds check.
            streams.withUnsafeMutableBufferPointer { streams in
                visitAll(&index) { holders, changed in
                    var start = 0
                    while start < holders.count {
                        let count = min(UInt64.bitWidth, holders.count &- start)
                        deliver(
                            to: UnsafeBufferPointer(rebasing: holders[start..<start &+ count]),
                            changedAt: changed, streams, &writer)
                        start &+= count
                    }
                }
            }
        }
    }

    /// Delivers to at most as many holders as an integer has bits.
    @inline(__always)
    private static func deliver(
        to holders: UnsafeBufferPointer<SubscriptionIndex.Subscriber>, changedAt changed: UInt64,
        _ streams: UnsafeMutableBufferPointer<StreamRecord>, _ writer: inout DeliveryWriter
    ) {
        // The streams are far apart in memory. A read-only first pass overlaps the cache misses,
        // which dominated this loop.
        var due: UInt64 = 0
        for (bit, holder) in holders.enumerated() {
            let slot = Int(holder.stream)
            guard slot < streams.count else { continue }
            let stream = streams[slot]
            let isDue =
                (stream.generation == holder.generation ? 1 : 0)
                & (stream.covered < changed ? 1 : 0) & (stream.isLagging ? 0 : 1)
            due |= UInt64(truncatingIfNeeded: isDue) << UInt64(truncatingIfNeeded: bit)
        }
        while due != 0 {
            let slot = holders[due.trailingZeroBitCount].stream
            due &= due &- 1
            // A stream may hold a key twice.
            guard !writer.hasDelivered(to: streams[Int(slot)]) else { continue }
            writer.deliver(to: &streams[Int(slot)], slot: slot)
        }
    }

    /// Sends one notification of everything that became stale for a stream since `point`, if any.
    ///
    /// Everything that became stale up to `point` must have been sent: afterwards the stream counts
    /// as covered up to the shard's position.
    mutating func catchUp(
        _ slot: UInt32, since point: ResumePoint, _ known: ClientSubscriptions? = nil,
        includingOwed: Bool = false, acceptedAt: Int64 = 0
    ) {
        let index = Int(slot)
        guard let subscription = subscriptions[index], !streams[index].isLagging else { return }
        let app = subscription.app
        guard let holdings = known ?? holdings(of: slot, app) else { return }
        let stale = staleness(app).stale(
            for: holdings, since: point, isNarrowed: subscription.kinds != nil,
            confirmed: includingOwed ? subscription.record.confirmed : nil, at: position)
        streams[index].covered = max(streams[index].covered, position)
        guard !stale.isEmpty else { return }
        _ = DeliveryWriter.write(
            watermarks: (position, position), batch: output.nextFrame, to: &output
        ) { $0.deliver(to: &streams[index], slot: slot) }
        output.add(.init(app: apps[app].name, content: stale, cause: nil, acceptedAt: acceptedAt))
    }

    func staleness(_ app: Int) -> Staleness {
        Staleness(ruleSet: apps[app].ruleSet, versions: apps[app].versions, limits: limits)
    }

    /// Returns the subscriptions of an open stream according to the catalog in force; `nil` for a
    /// stream that is about to be closed.
    func holdings(of slot: UInt32, _ app: Int) -> ClientSubscriptions? {
        guard let subscription = subscriptions[Int(slot)], !subscription.isEnded else { return nil }
        return apps[app].ruleSet.holdings(of: subscription.record, kinds: subscription.kinds)
    }
}

extension [StreamRecord] {
    /// Adds to the number of waiting keys of each stream that depends on a key.
    mutating func addWaitingKeys(
        _ count: Int32, to holders: UnsafeBufferPointer<SubscriptionIndex.Subscriber>
    ) {
        for holder in holders where self[Int(holder.stream)].generation == holder.generation {
            self[Int(holder.stream)].waitingKeys &+= UInt32(bitPattern: count)
        }
    }
}
