import WidgetModel

extension Shard {
    /// Notifies the holders of each key. Keys with the same name share one notification, and a
    /// stream that holds several of them gets it once.
    mutating func send(
        _ keys: [ChangedKey], _ app: Int, watermark: UInt64,
        causeTime: String?, acceptedAt: Int64
    ) {
        guard !keys.isEmpty else { return }
        let batch = notifications + 1
        let rules = apps[app].ruleSet.rules
        let named =
            keys.count == 1
            ? [(rules[keys[0].key.rule].name(of: keys[0].key.values), keys)]
            : Self.named(keys, rules)
        for (name, keys) in named {
            notifications += 1
            let sequence = keys.reduce(0) { max($0, $1.sequence) }
            let frame = ShardOutput.Frame(
                app: apps[app].name, content: StaleSet([name], sequence: sequence),
                watermark: watermark, causeTime: causeTime, acceptedAt: acceptedAt)
            var place: Int32?
            for (key, changed) in keys {
                deliver(frame, &place, to: key, changedAt: changed, app, batch: batch)
            }
        }
    }

    /// A key and the latest change that hit it.
    typealias ChangedKey = (key: CollapseWindow.Key, sequence: UInt64)

    /// The keys by their names, in the order in which each name comes first.
    private static func named(
        _ keys: [ChangedKey], _ rules: [Rule]
    ) -> [(name: StaleName, keys: [ChangedKey])] {
        // Few names are sooner compared than hashed.
        let isHashed = keys.count > 8
        var places: [StaleName: Int] = [:]
        var result: [(name: StaleName, keys: [ChangedKey])] = []
        for changed in keys {
            let name = rules[changed.key.rule].name(of: changed.key.values)
            if let known = isHashed ? places[name] : result.firstIndex(where: { $0.name == name }) {
                result[known].keys.append(changed)
            } else {
                if isHashed { places[name] = result.count }
                result.append((name, [changed]))
            }
        }
        return result
    }

    /// Hands a frame, the notification last counted, to the holders of a key that have not got it
    /// yet; `place` is its place in the output, once it has one.
    private mutating func deliver(
        _ frame: ShardOutput.Frame, _ place: inout Int32?, to key: CollapseWindow.Key,
        changedAt changed: UInt64, _ app: Int, batch: UInt64
    ) {
        // The holders are visited while `streams` and `output` change, so both leave `self` for
        // the time of the visit: exclusive access without a copy.
        var streams: [StreamRecord] = []
        swap(&streams, &self.streams)
        var output = ShardOutput()
        swap(&output, &self.output)
        let isDelivered = DeliveryWriter.write(
            place ?? output.nextFrame, watermark: frame.watermark, number: notifications,
            batch: batch, to: &output
        ) { writer in
            // Sound: the buffer is used within the closure that lends it, after a bounds check.
            streams.withUnsafeMutableBufferPointer { streams in
                apps[app].index.visitHolders(rule: key.rule, values: key.values) { holders in
                    var rest = holders[...]
                    while !rest.isEmpty {
                        let some = UnsafeBufferPointer(rebasing: rest.prefix(UInt64.bitWidth))
                        rest = rest.dropFirst(some.count)
                        Self.deliver(to: some, changedAt: changed, streams, &writer)
                    }
                }
            }
        }
        if isDelivered, place == nil {
            place = output.nextFrame
            output.add(frame)
        }
        swap(&output, &self.output)
        swap(&streams, &self.streams)
    }

    /// As many holders as an integer has bits.
    @inline(__always)
    private static func deliver(
        to holders: UnsafeBufferPointer<SubscriptionIndex.Holder>, changedAt changed: UInt64,
        _ streams: UnsafeMutableBufferPointer<StreamRecord>, _ writer: inout DeliveryWriter
    ) {
        // Their streams lie far apart. Looked at first without acting, they come from memory
        // together and not one after the other, which most of the time went by with.
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
            guard streams[Int(slot)].notified != writer.number else { continue }
            writer.deliver(to: &streams[Int(slot)], slot: slot)
        }
    }

    /// Sends one notification of everything stale for a stream since `point`, if anything is.
    ///
    /// Nothing that became stale up to `point` may be unsent: from here on the stream counts as
    /// covered up to the shard's position.
    mutating func catchUp(
        _ slot: UInt32, since point: ResumePoint, _ known: Holdings? = nil,
        includingOwed: Bool = false, acceptedAt: Int64 = 0
    ) {
        let index = Int(slot)
        guard let subscription = subscriptions[index], !streams[index].isLagging else { return }
        let app = Int(streams[index].app)
        guard let holdings = known ?? holdings(of: slot, app) else { return }
        let stale = staleness(app).stale(
            for: holdings, since: point, isNarrowed: subscription.kinds != nil,
            confirmed: includingOwed ? subscription.record.confirmed : nil, at: position)
        streams[index].covered = max(streams[index].covered, position)
        guard !stale.isEmpty else { return }
        notifications += 1
        _ = DeliveryWriter.write(
            output.nextFrame, watermark: position, number: notifications, batch: notifications,
            to: &output
        ) { $0.deliver(to: &streams[index], slot: slot) }
        output.add(
            .init(
                app: apps[app].name, content: stale, watermark: position, causeTime: nil,
                acceptedAt: acceptedAt))
    }

    func staleness(_ app: Int) -> Staleness {
        Staleness(ruleSet: apps[app].ruleSet, versions: apps[app].versions, limits: limits)
    }

    /// What the client of an open stream holds by the catalog in force.
    func holdings(of slot: UInt32, _ app: Int) -> Holdings? {
        subscriptions[Int(slot)].map {
            apps[app].ruleSet.holdings(of: $0.record, kinds: $0.kinds)
        }
    }
}
