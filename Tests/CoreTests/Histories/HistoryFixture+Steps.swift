import GatewayTestSupport
import WidgetModel

@testable import GatewayCore

extension HistoryFixture {
    /// Plays one history: random steps, and now and then a pause in which everything settles.
    func play(steps: Int) throws {
        for _ in 0..<steps {
            try step()
            if random.happens(5) { try settle() }
        }
        try settle()
    }

    private func step() throws {
        let shard = random.below(shards.count)
        let receiver = random.below(receivers.count)
        switch random.below(120) {
        case 0..<24: try append(random.pick(apps), .change(RandomInputs.change(&random)))
        case 24..<27:
            let app = random.pick(apps)
            try append(app, .catalog(RandomInputs.catalog(app: app, &random)))
        case 27..<30:
            let app = random.pick(apps)
            // An app that a restored backup does not know is refused.
            guard catalog(of: app) != nil else { break }
            try append(
                app,
                .reload(
                    random.pick([
                        .everything, .kind("k0"), .kind("k1"), .kind("k2"), .kind("k3"),
                        .kind("t0"), .client("\(app)-0"), .client("\(app)-1"),
                    ])))
        case 30..<36:
            let receiver = receivers[receiver]
            try register(receiver.app, receiver.client)
        case 36..<58: try takeMessages(shard, 1 + random.below(4))
        case 58..<64:
            now += Int64(random.below(250))
            for shard in shards.indices where random.happens(80) { try endWindows(shard) }
        case 64..<74: if receivers[receiver].isIdle { try ask(receiver, on: shard) }
        case 74..<84: if let key = receivers[receiver].stream { try read(key, random.below(5)) }
        case 84..<87: if let key = receivers[receiver].stream { try disconnect(key) }
        case 87..<90: for key in streams.keys.sorted() { try heartbeat(key) }
        case 90..<93: if receivers[receiver].isIdle { try poll(receiver, on: shard) }
        case 93..<96: try acknowledge(receiver)
        case 96: try gap(shard)
        case 97: try restart(restoring: false)
        case 98: try restart(restoring: true)
        case 99:
            retained = min(head, retained + UInt64(random.below(8)))
            note("the log is retained above \(retained)")
        case 100..<106: try move(receiver)
        case 106..<109: try remove(receiver)
        case 109..<113:
            // Another display name, say: every rule stays as it is.
            let app = random.pick(apps)
            if let same = catalog(of: app) { try append(app, .catalog(same)) }
        default: if receivers[receiver].isIdle { try ask(receiver, on: shard) }
        }
        // Requested streams are opened sooner or later, and most of the time sooner.
        for index in receivers.indices where random.happens(50) { try admit(index) }
        for shard in shards.indices where random.happens(70) { try endTurn(shard) }
        if !lateSeals.isEmpty, random.happens(30) {
            messages += lateSeals.map { .sealed($0) }
            lateSeals = []
        }
    }

    // MARK: Shards

    func takeMessages(_ shard: Int, _ count: Int) throws {
        for _ in 0..<count where taken[shard] < messages.count {
            let message = messages[taken[shard]]
            taken[shard] += 1
            try take(message, shard, gapTo: nil)
        }
    }

    private func take(_ message: ShardMessage, _ shard: Int, gapTo gap: UInt64?) throws {
        let seen = shards[shard].output.deliveries.count
        switch message {
        case .entry(let entry):
            note(" shard \(shard) applies \(entry.sequence)")
            appliedAt[shard][entry.sequence] = now
            shards[shard].apply(
                sabotage == .skipsAnEntry ? hollow(entry) : entry, now: now)
            if case .catalog = entry.body, let app = shards[shard].number(ofApp: entry.app),
                shards[shard].apps[app].collapse.oldestWaiting != nil
            {
                checked("a catalog keeps windows")
            }
            try observe(shard, .entry(entry, gapTo: gap), seen)
        case .registered(let record, let app):
            note(" shard \(shard) takes the registration of \(record.client)")
            // A newer registration may have opened streams already, so the shard takes the current
            // one.
            guard let inForce = records[record.client] else {
                try end(record.client, app, shard, seen)
                break
            }
            if sabotage != .forgetsARegistration || random.happens(40) {
                shards[shard].registered(
                    sabotage == .goesBackToAnOlder ? record : inForce, app: app)
            }
            try observe(shard, .registration(inForce), seen)
        case .removed(let client, let app):
            note(" shard \(shard) takes the removal of \(client)")
            try end(client, app, shard, seen)
        case .sealed(let versions):
            checked("sealed versions")
            shards[shard].adopt(versions)
            try observe(shard, .quiet, seen)
        case .confirmed(let record, let app):
            shards[shard].confirmed(record, app: app)
            for key in streams.keys where streams[key]?.shard == shard {
                guard let held = streams[key]?.record, held.client == record.client else {
                    continue
                }
                streams[key]?.record = held.with(
                    confirmed: held.confirmed.merging(record.confirmed) { max($0, $1) })
            }
            try observe(shard, .quiet, seen)
        }
    }

    /// Makes the shard miss changes, which the next entry it sees reveals.
    private func gap(_ shard: Int) throws {
        guard taken[shard] + 1 < messages.count,
            case .entry(let missed) = messages[taken[shard]], case .change = missed.body,
            case .entry(let next) = messages[taken[shard] + 1]
        else { return }
        if case .catalog = next.body { return }
        taken[shard] += 2
        note(" shard \(shard) misses \(missed.sequence)")
        floors[shard] = missed.sequence
        try take(.entry(next), shard, gapTo: missed.sequence)
    }

    /// Loses a tail of the log and notifies every open stream. Earlier frames have already left.
    func voidCursors(_ shard: Int) throws {
        try endTurn(shard)
        shards[shard].voidCursors()
        try observe(shard, .voiding, 0)
        try endTurn(shard)
    }

    private func endWindows(_ shard: Int) throws {
        let seen = shards[shard].output.deliveries.count
        endedAt[shard] = now
        shards[shard].endWindows(now: now)
        try observe(shard, .windows, seen)
    }

    /// Ends a turn: its frames either fit into a stream's buffer, or the stream lags.
    func endTurn(_ shard: Int) throws {
        shards[shard].clearOutput()
        for key in streams.keys.sorted() where streams[key]?.shard == shard {
            guard var stream = streams[key] else { continue }
            // Some connections are gone at once, others later.
            if stream.isEnded, random.happens(60) {
                try disconnect(key)
                continue
            }
            let before = stream.beforeTurn
            stream.beforeTurn = nil
            if let before, stream.pipe.count > 4, !stream.isLagging {
                stream.isLagging = true
                if random.happens(50) {
                    // The frames of this turn are not sent at all.
                    stream.pipe.removeLast(stream.pipe.count - before.pipe)
                    stream.lastID = before.lastID
                    stream.checkedUpTo = min(stream.checkedUpTo, before.lastID)
                }
                note("  stream \(key) lags since \(stream.lastID)")
                shards[shard].lagging(stream.id, since: stream.lastID)
            }
            streams[key] = stream
        }
    }

    // MARK: Streams and polls

    private func read(_ key: Int, _ count: Int) throws {
        for _ in 0..<count {
            guard var stream = streams[key], !stream.pipe.isEmpty else { break }
            let (content, id, epoch) = stream.pipe.removeFirst()
            if let before = stream.beforeTurn {
                stream.beforeTurn = (max(0, before.pipe - 1), before.lastID)
            }
            streams[key] = stream
            let index = stream.receiver
            if let content { rebuild(index, content) }
            if let id {
                receivers[index].cursor = seal.cursor(epoch, id)
                checked("received id")
                if let missed = awake(index).first(where: { $0.value <= id }) {
                    throw violation("\(receivers[index].client) has \(id) but not \(missed)")
                }
            }
        }
        guard var stream = streams[key], stream.isLagging, stream.pipe.isEmpty else { return }
        stream.isLagging = false
        streams[key] = stream
        note("  stream \(key) recovers")
        let seen = shards[stream.shard].output.deliveries.count
        shards[stream.shard].recovered(stream.id)
        try observe(stream.shard, .recovery(key, stream.lastID), seen)
    }

    /// Rebuilds the items that the receiver was notified of, with all present data.
    private func rebuild(_ index: Int, _ content: StaleSet) {
        receivers[index].dirty = receivers[index].dirty.filter { holding, _ in
            !content.all
                && !content.names.contains { name in
                    guard (name.target == .recommendations) == (holding.form == .set),
                        (name.target == .activity) == (holding.form == .activity)
                    else { return false }
                    if let id = name.activityID {
                        return id == holding.id && name.kind == holding.kind
                    }
                    return ReloadNotification.Reload(kind: name.kind, parameters: name.parameters)
                        .concerns(kind: holding.kind, values: holding.parameters)
                }
        }
    }

    /// Returns the items that are stale on the screen and were not notified, except sleeping ones.
    func awake(_ index: Int) -> [Holding: UInt64] {
        let receiver = receivers[index]
        guard let catalog = catalog(of: receiver.app) else { return [:] }
        return receiver.dirty.filter { holding, _ in
            holding.target(in: catalog) != nil && receiver.kinds?.contains(holding.kind) ?? true
        }
    }

    func disconnect(_ key: Int) throws {
        // Some of the frames in flight still arrive.
        try read(key, random.below(4))
        guard let stream = streams.removeValue(forKey: key) else { return }
        note("  stream \(key) ends")
        shards[stream.shard].close(stream.id)
        receivers[stream.receiver].stream = nil
    }

    private func heartbeat(_ key: Int) throws {
        guard var stream = streams[key] else { return }
        guard var id = shards[stream.shard].heartbeat(stream.id) else {
            if !stream.isLagging, !stream.isEnded {
                throw violation("no heartbeat on an open stream")
            }
            return
        }
        if stream.isEnded { throw violation("a heartbeat on a stream that ended") }
        if stream.isLagging { throw violation("a heartbeat on a lagging stream") }
        if sabotage == .heartbeatsAhead { id = max(id, head) }
        if sabotage == .holdsBackOthers, shards[stream.shard].nextWindowEnd != nil {
            id = stream.lastID
        }
        if id > max(shards[stream.shard].position, stream.lastID) {
            throw violation("heartbeat \(id) is ahead of the shard")
        }
        // When nothing waits, an idle stream's id is that of the head.
        if shards[stream.shard].nextWindowEnd == nil, id < shards[stream.shard].position {
            throw violation("heartbeat \(id) lags behind")
        }
        try checkCurrent(stream, id)
        note("  stream \(key) heartbeat \(id)")
        try send((nil, id), &stream)
        streams[key] = stream
    }

    private func poll(_ index: Int, on shard: Int) throws {
        let receiver = receivers[index]
        guard let record = records[receiver.client] else { return try introduce(index) }
        try takeMessages(shard, messages.count)
        let point = try resume(receiver.cursor)
        guard
            let stale = shards[shard].poll(
                record, app: receiver.app, since: point, kinds: receiver.kinds)
        else { return }
        note(" \(receiver.client) polls shard \(shard) since \(point): \(stale)")
        let position = shards[shard].position
        try check(
            stale.isEmpty ? nil : stale,
            expectation(
                record, receiver.app, receiver.kinds, since: point, upTo: position,
                floor: floors[shard], owed: true),
            held(record, receiver.app, receiver.kinds, upTo: position),
            isNarrowed: receiver.kinds != nil, "poll")
        rebuild(index, stale)
        if let missed = awake(index).first { throw violation("the poll left out \(missed)") }
        if random.happens(70) { receivers[index].cursor = cursor(position) }
    }

    // MARK: Restarts

    private func restart(restoring: Bool) throws {
        for key in streams.keys.sorted() { try disconnect(key) }
        if restoring {
            let cut = retained + UInt64(random.below(Int(head - retained) + 1))
            let isAnnounced = random.happens(70)
            note("a backup of \(cut) is restored; announced \(isAnnounced)")
            log.removeLast(Int(head - cut))
            for (client, record) in records {
                records[client] = record.with(
                    confirmed: record.confirmed.mapValues { min($0, cut) })
            }
            // The backup knows no epoch that began after it.
            naiveEpochs.removeAll { $0.openedAt > cut }
            if isAnnounced { for index in naiveEpochs.indices { naiveEpochs[index].isVoid = true } }
            for index in receivers.indices {
                receivers[index].dirty = receivers[index].dirty.filter { isAnnounced || $1 <= cut }
                    .mapValues { $0 <= cut ? $0 : 0 }
                // An item that sleeps under the restored catalog is built anew when it wakes.
                let catalog = catalog(of: receivers[index].app)
                receivers[index].dirty = receivers[index].dirty.filter { holding, _ in
                    catalog.flatMap(holding.target) != nil
                }
            }
        }
        note("restart at \(head)")
        start()
    }

    /// Lets everything settle. Every client that follows the rules then knows everything.
    func settle() throws {
        note("settling")
        for shard in shards.indices {
            try takeMessages(shard, messages.count)
            try endTurn(shard)
        }
        for index in receivers.indices { try admit(index) }
        for key in streams.keys.sorted() where streams[key]?.isEnded == true {
            try disconnect(key)
        }
        for _ in 0..<100 {
            now += 1_000
            for shard in shards.indices {
                try endWindows(shard)
                try endTurn(shard)
            }
            for key in streams.keys.sorted() { try read(key, 1_000) }
            for shard in shards.indices { try endTurn(shard) }
            let isQuiet = streams.values.allSatisfy { $0.pipe.isEmpty && !$0.isLagging }
            if isQuiet, shards.allSatisfy({ $0.nextWindowEnd == nil }) { break }
        }
        for key in streams.keys.sorted() {
            guard var stream = streams[key] else { continue }
            try checkSaid(&stream, upTo: head)
            streams[key] = stream
            try heartbeat(key)
        }
        for index in receivers.indices {
            checked("settled")
            if receivers[index].stream == nil {
                try poll(index, on: random.below(shards.count))
            } else if let missed = awake(index).first {
                throw violation("\(receivers[index].client) was never told of \(missed)")
            }
        }
        for shard in shards.indices { try endTurn(shard) }
    }
}
