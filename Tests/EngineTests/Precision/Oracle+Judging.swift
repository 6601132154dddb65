/// The judgement of what was sent, and of what was not.
extension Oracle {
    /// A block of an event stream.
    struct Block: Sendable {
        let id: (text: String, sequence: UInt64)?
        let notice: OracleNotice?
    }

    // MARK: Streams and polls

    /// Judges the blocks that a stream received since the last look.
    mutating func streamed(_ blocks: [Block], on number: Int, to name: String, _ step: Step) {
        guard var client = clients[name], var stream = client.streams[number] else { return }
        let items = client.items.map(\.item).filter { stream.covers($0) }
        let idBefore = stream.lastID
        var told: UInt64 = 0
        for block in blocks {
            if let notice = block.notice {
                told = max(told, notice.sequence)
                let (before, confirmedSet) = (stream, client.confirmedSet)
                func known(_ item: OracleItem) -> UInt64 {
                    let told = before.told[item] ?? before.base
                    switch step {
                    case .registration: return min(told, idBefore)
                    case .opening(number) where item.sort == .set: return min(told, confirmedSet)
                    default: return told
                    }
                }
                // What is `all` for a stream of some kinds names these kinds.
                if before.kinds == nil || !before.mayAll {
                    judge(
                        notice, about: items, "the stream of \(name)", mayAll: before.mayAll,
                        after: known)
                }
                if step == .live, !notice.all { judgeWindows(notice, about: items, name, &stream) }
                if notice.all || before.kinds != nil { stream.mayAll = false }
                for item in items where notice.matches(item) {
                    stream.told[item] = max(stream.told[item] ?? stream.base, notice.sequence)
                    client.seen[item] = max(client.seen[item] ?? 0, notice.sequence)
                }
            }
            guard let id = block.id, id.sequence != stream.lastID else { continue }
            if id.sequence < stream.lastID { blame(.id, "that of \(name) went back") }
            stream.ids.append((id.sequence, now))
            if stream.kinds == nil, id.sequence >= client.position {
                client.cursor = id.text
                client.position = id.sequence
            }
        }
        let hasWindow = items.contains { catalog.window(of: $0.kind) > 0 }
        if told > stream.lastID, !hasWindow {
            blame(
                .id,
                "\(stream.lastID) of \(name) is behind \(told), which it was told, though none of "
                    + "its keys has a window")
        }
        client.streams[number] = stream
        clients[name] = client
    }

    /// Judges the answer to a poll with the client's cursor.
    ///
    /// - Parameters:
    ///   - cursor: The new cursor.
    ///   - kind: The kind that the poll is limited to.
    mutating func polled(
        _ name: String, _ notice: OracleNotice, _ cursor: (text: String, sequence: UInt64),
        kind: String?
    ) {
        guard var client = clients[name] else { return }
        let items = client.items.map(\.item).filter { kind == nil || $0.kind == kind }
        let (base, confirmedSet) = (client.position, client.confirmedSet)
        // All that is limited to some kinds is named by these kinds.
        if kind == nil || base >= max(forgotten, 1) {
            judge(
                notice, about: items, "the poll of \(name)", mayAll: base < max(forgotten, 1)
            ) { $0.sort == .set ? min(base, confirmedSet) : base }
        }
        for item in items where !notice.matches(item) {
            let known = max(base, client.since[item] ?? 0, item.sort == .set ? confirmedSet : 0)
            let missed = hits(of: item, after: known).filter(\.isRequired)
            if let hit = missed.first {
                blame(
                    .lost, "the poll of \(name) since \(base) leaves out \(item), \(hit.sequence)")
            }
        }
        for item in items where notice.matches(item) { client.seen[item] = head }
        client.isKnownToAnswer = true
        contact(&client)
        if kind == nil {
            client.cursor = cursor.text
            client.position = cursor.sequence
        }
        clients[name] = client
    }

    /// Judges the names of a notification about these items of its client.
    ///
    /// - Parameter bound: Returns the position after which a change of an item may be told.
    private mutating func judge(
        _ notice: OracleNotice, about items: [OracleItem], _ what: String, mayAll: Bool,
        after bound: (OracleItem) -> UInt64
    ) {
        if notice.all, !mayAll { blame(.everything, "\(what) at \(notice.sequence)") }
        for name in notice.names {
            let named = items.filter { name.matches($0) }
            let isUnchanged = named.allSatisfy { item in
                hits(of: item, after: bound(item), upTo: notice.sequence).isEmpty
            }
            if named.isEmpty {
                blame(.foreign, "\(what) names \(name)")
            } else if isUnchanged {
                blame(.needless, "\(what) names \(name) at \(notice.sequence)")
            }
        }
    }

    /// Judges whether a stream tells of a key twice in its window.
    private mutating func judgeWindows(
        _ notice: OracleNotice, about items: [OracleItem], _ name: String, _ stream: inout Stream
    ) {
        let changes = items.filter { notice.matches($0) }.map { item in
            let told = stream.told[item] ?? stream.base
            return (item: item, hits: hits(of: item, after: told, upTo: notice.sequence))
        }
        if isTooSoon(changes, stream.windows) {
            blame(.collapse, "the stream of \(name) names \(notice) twice in a window")
        }
        for (item, hits) in changes {
            for hit in hits { stream.windows[Key(item: item, rule: hit.rule)] = now }
        }
    }

    /// Returns whether every change of these items is in a window that is open.
    private func isTooSoon(
        _ changes: [(item: OracleItem, hits: [Hit])], _ windows: [Key: Int64]
    ) -> Bool {
        let waits = changes.flatMap { item, hits in
            hits.map { hit -> Bool in
                guard let began = windows[Key(item: item, rule: hit.rule)] else { return false }
                return now < began + hit.window
            }
        }
        return !waits.isEmpty && !waits.contains(false)
    }

    // MARK: Pushes

    /// The changes of an item that a push must tell.
    private typealias Reason = (item: OracleItem, route: [OracleAddress], hits: [Hit])

    /// Judges a push or a webhook.
    mutating func pushed(_ push: OracleSender.Push) {
        let what = "\(push.client) at \(push.address) (\(push.notice))"
        guard var client = clients[push.client], var place = client.places[push.address] else {
            return blame(.foreign, "\(what), an address that it gave up")
        }
        recent = recent.filter { $0 > now - 1_000 } + [now]
        if recent.count > 5 * devicesPerSecond { blame(.spread, "\(recent.count) within 1 s") }
        let here = client.items.filter { $0.route.contains(push.address) }
        var reasons: [Reason] = []
        for (item, route) in here {
            let new = hits(of: item, after: bound(item, client, place), upTo: push.position)
            if !new.isEmpty { reasons.append((item, route, new)) }
        }
        let repeated = repeatable(client, place, here.map(\.item))
        if !reasons.isEmpty {
            judge(push, what, for: reasons, of: client, at: place, isRepeat: !repeated.isEmpty)
        } else if repeated.isEmpty, !push.notice.all || place.mayAllUntil < now {
            blame(.needless, what)
        }
        switch push.answer {
        case .accepts:
            for (item, _) in here where !push.notice.matches(item) {
                let bound = bound(item, client, place)
                let waits = hits(of: item, after: bound, upTo: push.position)
                place.left[item] = waits.contains(where: \.isRequired) ? bound : nil
            }
            place.told = max(place.told, push.position)
            place.toldSets = max(place.toldSets, push.position)
            place.mayAllUntil = .min
            (place.failures, place.retryAt, place.acceptedAt) = (0, 0, now)
            if !push.address.isWebhook, !push.address.isActivity { client.pushedAt = now }
            for (item, _) in here where push.notice.matches(item) {
                place.left[item] = nil
                client.reported[item] = max(client.reported[item] ?? 0, push.position)
                client.added[item] = nil
            }
            for sort in Set(here.map(\.item).filter { push.notice.matches($0) }.map(\.sort)) {
                let isRepeat = repeated.contains(sort) && !reasons.contains { $0.item.sort == sort }
                let repeats = (place.unanswered[sort]?.repeats ?? 0) + (isRepeat ? 1 : 0)
                // No activity answers a push to it.
                if !push.address.isActivity {
                    place.unanswered[sort] = (now, repeats, push.notice.all)
                }
            }
            let isDelayed = !client.streams.isEmpty || now <= client.streamAt + 2 * Self.grace
            for reason in reasons where !push.notice.all && push.notice.matches(reason.item) {
                for hit in reason.hits where hit.window > 0 && hit.sequence > client.windowless {
                    // What waits may be named for another reason.
                    let first = hits(of: reason.item, after: 0).first {
                        $0.rule == hit.rule && hit.at < $0.at + $0.window
                    }
                    let isOpen = now < (first?.at ?? 0) + hit.window
                    place.windows[Key(item: reason.item, rule: hit.rule)] =
                        isOpen || isDelayed ? first?.at ?? hit.at : now
                }
            }
            client.places[push.address] = place
        case .fails:
            place.failures += 1
            place.retryAt = now + Self.retryWait(place.failures, at: push.address)
            client.places[push.address] = place
        case .dies:
            client.addresses.removeAll { $0 == push.address }
            let own = client.controls.indices.filter { client.controls[$0].address == push.address }
            for index in own { client.controls[index].address = nil }
            client.places[push.address] = nil
        }
        clients[push.client] = client
    }

    private mutating func judge(
        _ push: OracleSender.Push, _ what: String, for reasons: [Reason], of client: Client,
        at place: Place, isRepeat: Bool
    ) {
        if isRepeat { return }
        let streams = client.streams.values.filter {
            $0.kinds == nil && !push.address.isActivity
        }
        let ends = reasons.flatMap { reason in
            reason.hits.map { hit -> Int64 in
                if hit.isVoid { return .min }
                return streams.map { graceEnd($0, reason.item, hit) }.min() ?? .min
            }
        }
        if ends.allSatisfy({ $0 > now }) {
            blame(.early, "\(what) is pushed beside a stream, at \(now) instead of \(ends)")
        }
        let isOfOthers = reasons.allSatisfy { reason in
            reason.route.prefix { $0 != push.address }.contains {
                client.places[$0]?.works ?? false
            }
        }
        if isOfOthers { blame(.turn, what) }
        if isTooSoon(reasons.map { (item: $0.item, hits: $0.hits) }, place.windows) {
            blame(.collapse, "\(what), pushed twice in a window")
        }
        guard push.address.isWebhook else { return }
        if push.notice.all, place.mayAllUntil < now { blame(.everything, what) }
        let owesSet = client.items.contains { item, _ in
            item.sort == .set && !hits(of: item, after: client.confirmedSet).isEmpty
        }
        guard !owesSet else { return }
        for name in push.notice.names {
            let named = client.items.map(\.item).filter { name.matches($0) }
            let isUnchanged = named.allSatisfy { item in
                let known = client.isForgotten ? 0 : client.confirmation(of: item)
                return hits(of: item, after: known).isEmpty
            }
            if isUnchanged { blame(.needless, "\(what) names \(name)") }
        }
    }

    /// Returns when the grace of a stream ends for a change of an item.
    private func graceEnd(_ stream: Stream, _ item: OracleItem, _ hit: Hit) -> Int64 {
        guard let id = stream.covered(hit.sequence) else { return .max }
        let end = id.at + Self.grace
        if hit.sequence <= stream.openedAt { return min(end, hit.at + 2 * Self.grace) }
        // Its windows are later than those of the pushes.
        let isDisplaced = hits(of: item, after: 0, upTo: stream.openedAt).contains {
            $0.rule == hit.rule && stream.ids[0].at < $0.at + 2 * $0.window
        }
        return isDisplaced ? min(end, max(id.at, hit.at + Self.grace)) : end
    }

    /// Returns the sorts of items whose push may be repeated at an address that accepted it.
    private func repeatable(
        _ client: Client, _ place: Place, _ items: [OracleItem]
    ) -> Set<OracleItem.Sort> {
        guard client.isKnownToAnswer else { return [] }
        let due = items.filter { item in
            guard let push = place.unanswered[item.sort], push.repeats < Self.repeatWaits.count,
                client.contactAt <= push.at, now - push.at >= Self.repeatWaits[push.repeats]
            else { return false }
            return push.all || !hits(of: item, after: client.confirmation(of: item)).isEmpty
        }
        return Set(due.map(\.sort))
    }

    /// The longest wait after so many failures, with its random part.
    private static func retryWait(_ failures: Int, at address: OracleAddress) -> Int64 {
        let first: [Int64] = address.isWebhook ? [5_000, 300_000, 1_800_000] : [60_000]
        let wait = first[min(failures, first.count) - 1]
        return (address.isWebhook ? wait : wait << min(failures - 1, 7)) * 5 / 4
    }

    // MARK: What is missing

    /// Blames what should have been told by now.
    mutating func judgeDebts() {
        for (name, client) in clients.sorted(by: { $0.key < $1.key }) {
            for (item, route) in client.items {
                judgeStreams(of: client, item, name)
                judgePushes(to: client, (item, route), name)
            }
        }
    }

    private mutating func judgeStreams(of client: Client, _ item: OracleItem, _ name: String) {
        for stream in client.streams.values where stream.covers(item) {
            let known = max(
                stream.told[item] ?? stream.base, client.since[item] ?? 0,
                item.sort == .set ? client.confirmedSet : 0)
            let overdue = hits(of: item, after: known).first {
                $0.isRequired && (now >= $0.at + $0.wait || stream.lastID >= $0.sequence)
            }
            if let hit = overdue {
                blame(
                    .late,
                    "the stream of \(name) is not told of \(item), \(hit.sequence), at \(now), its "
                        + "id is \(stream.lastID)")
            }
        }
    }

    private mutating func judgePushes(
        to client: Client, _ holding: (item: OracleItem, route: [OracleAddress]), _ name: String
    ) {
        let item = holding.item
        let places = holding.route.compactMap { client.places[$0] }
        guard let first = places.first else { return }
        let isPushed = client.isPushed(item)
        let known = max(
            isPushed ? 0 : client.confirmation(of: item), client.since[item] ?? 0,
            client.reported[item] ?? 0)
        let owed = hits(of: item, after: known).filter { hit in
            let wasTold = hit.isVoid || hit.sequence <= client.seen[item] ?? 0
            return hit.isRequired && !(hit.at <= first.since && wasTold)
        }
        guard let hit = owed.min(by: { $0.sequence < $1.sequence }) else { return }
        var due = max(hit.at + hit.wait, first.since + Self.grace, restartedAt + Self.grace)
        if !isPushed {
            due = max(due, client.streamAt + Self.grace, client.pushedAt + Self.interval)
        }
        for stream in client.streams.values where stream.covers(item) && !isPushed {
            guard let covered = stream.covered(hit.sequence) else { return }
            due = max(due, covered.at + Self.grace, hit.at + hit.wait + Self.grace)
            if catalog.collapses { due += Self.idInterval }
        }
        for place in places {
            let interval = isPushed ? 0 : Self.interval
            due = max(due, place.retryAt, place.acceptedAt + max(interval, hit.wait))
        }
        // A minute at most, for changes of normal urgency.
        if clients.count > devicesPerSecond { due += 60_000 }
        if now > due {
            blame(
                .late,
                "\(name) is not pushed \(item), \(hit.sequence), of \(hit.at), by \(due), at \(now)"
            )
        }
    }

    /// The clients that acknowledge their cursors now.
    var promptClients: [String] {
        clients.filter { $0.value.isPrompt && $0.value.position > $0.value.confirmed }.keys
            .sorted()
    }
}
