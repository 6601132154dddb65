import CatalogModel
import GatewayTestSupport
import WidgetModel

@testable import GatewayCore

/// The event that made a shard send something.
enum Occasion {
    case opening(Int, ResumePoint)
    case recovery(Int, UInt64)
    case registration(ClientRecord)
    case removal(client: String, app: String)
    case entry(LogEntry, gapTo: UInt64?)
    case windows
    case voiding
    case quiet
}

extension HistoryFixture {
    /// Checks all frames that a shard has produced since the last call, and puts them into the
    /// pipes.
    func observe(_ shard: Int, _ occasion: Occasion, _ seen: Int) throws {
        let output = shards[shard].output
        var frames: [Int: [(content: StaleSet, id: UInt64?)]] = [:]
        for (stream, first) in output.touched {
            guard
                let name = streams.first(where: { $0.value.shard == shard && $0.value.id == stream }
                )
            else { continue }
            var place = Int(first)
            while place >= 0 {
                let delivery = output.deliveries[place]
                if place >= seen {
                    let frame = output.frames[Int(delivery.frame)]
                    var id: UInt64? = delivery.id > 0 ? delivery.id : nil
                    if sabotage == .coversTooFar, let honest = id, random.happens(30) {
                        id = honest + 1
                    }
                    frames[name.key, default: []].append((frame.content, id))
                }
                place = Int(delivery.next)
            }
        }
        if sabotage == .sendsToAnother, let from = frames.keys.sorted().first, random.happens(30),
            let other = streams.keys.sorted().first(where: { $0 != from }),
            let frame = frames[from]?.first
        {
            frames[other, default: []].append((frame.content, nil))
        }
        for key in streams.keys.sorted() where streams[key]?.shard == shard {
            try observe(key, occasion, frames[key] ?? [])
        }
    }

    private func observe(
        _ key: Int, _ occasion: Occasion, _ frames: [(content: StaleSet, id: UInt64?)]
    ) throws {
        guard var stream = streams[key] else { return }
        let app = receivers[stream.receiver].app
        let kinds = receivers[stream.receiver].kinds
        let position = shards[stream.shard].position
        let floor = floors[stream.shard]
        if stream.isLagging, !frames.isEmpty { throw violation("a lagging stream is sent to") }
        if stream.isEnded {
            guard frames.isEmpty else { throw violation("\(frames) after the client was removed") }
            return
        }
        for frame in frames {
            note("  stream \(key) gets \(frame.content) id \(frame.id.map(String.init) ?? "-")")
        }
        var rest = frames[...]
        func held(_ upTo: UInt64) -> [(holding: Holding, target: Target)] {
            self.held(stream.record, app, kinds, upTo: upTo)
        }
        // Checks for one catch-up from `point`, exactly as defined.
        func catchUp(
            _ point: ResumePoint, owed: Bool, _ what: String
        ) throws {
            let expected = expectation(
                stream.record, app, kinds, since: point, upTo: position, floor: floor, owed: owed)
            let frame = rest.popFirst()
            try check(
                frame?.content, expected, held(position), isNarrowed: kinds != nil, what)
            stream.covered = max(stream.covered, position)
            if let frame { try send(frame, &stream) }
        }
        switch occasion {
        case .opening(let opened, let point) where opened == key:
            try catchUp(point, owed: true, "opening")
        case .recovery(let recovered, let since) where recovered == key:
            try catchUp(since == 0 ? .everything : .after(since), owed: true, "recovery")
        case .registration(let record) where record.client == stream.record.client:
            let isKnown = stream.record === record
            stream.record = record
            let time = stream.isLagging ? "lagging" : stream.isSilent ? "silent" : "speaking"
            checked(isKnown ? "opened by it" : "registered while \(time)")
            // The registration that opened the stream is not new to it.
            guard !stream.isLagging, !isKnown else { break }
            let point: ResumePoint = stream.lastID == 0 ? .everything : .after(stream.lastID)
            try catchUp(point, owed: false, "registration")
        case .removal(client: let client, app: app) where client == stream.record.client:
            stream.isEnded = true
            if stream.isLagging { checked("removed while lagging") }
        case .voiding:
            stream.lastID = 0
            guard !stream.isLagging else { break }
            try catchUp(.everything, owed: false, "lost tail")
        case .entry(let entry, let gap) where !stream.isLagging:
            if let gap {
                let frame = rest.popFirst()
                var expected = Expectation()
                expected.everything = !held(gap).isEmpty
                try check(frame?.content, expected, held(gap), isNarrowed: kinds != nil, "gap")
                stream.covered = max(stream.covered, gap)
                if let frame { try send(frame, &stream) }
            }
            guard entry.app == app else { break }
            try applied(entry, &stream, &rest)
        case .windows where !stream.isLagging:
            while let frame = rest.popFirst() { try live(frame, &stream, upTo: position) }
            if !frames.isEmpty { try checkCurrent(stream, stream.lastID) }
        default: break
        }
        if !rest.isEmpty { throw violation("stream \(key) gets \(rest) for no reason") }
        streams[key] = stream
    }

    /// Checks the frames that a stream got for one entry of its app.
    private func applied(
        _ entry: LogEntry, _ stream: inout OpenStream,
        _ rest: inout ArraySlice<(content: StaleSet, id: UInt64?)>
    ) throws {
        let position = entry.sequence
        let held = held(
            stream.record, entry.app, receivers[stream.receiver].kinds, upTo: position)
        let isNarrowed = receivers[stream.receiver].kinds != nil
        let remembered = log[Int(position) - 1]
        let before = max(stream.covered, 1) - 1
        switch remembered.body {
        case .change(let change):
            let isTold = !rest.isEmpty
            while let frame = rest.popFirst() { try live(frame, &stream, upTo: position) }
            if isTold { try checkCurrent(stream, stream.lastID) }
            // Without a collapse window, the change was notified at once.
            guard let catalog = remembered.catalog, stream.covered < position else { return }
            for (holding, _) in held
            where holding.declaration(in: catalog)?.collapse == 0 {
                let hits = NaiveModel.hits(
                    change, holding, attributes: stream.record.attributes, catalog)
                checked("at once")
                if !hits.isEmpty, stream.named[holding] ?? 0 < position {
                    throw violation("\(holding) was not told of \(position) at once")
                }
            }
        case .reload(.client(let client)) where client != stream.record.client: break
        case .catalog, .reload:
            let isOfEverything =
                switch remembered.body {
                case .reload(.everything), .reload(.client): true
                default: false
                }
            var expected = Expectation()
            if stream.covered < position {
                for (holding, target) in held
                where hits(remembered, holding, stream.record) {
                    if isOfEverything { expected.everything = true }
                    expected.required.insert(holding.whole(target))
                }
                if isOfEverything, !held.isEmpty { expected.everything = true }
            }
            expected.allowed = expected.required
            var covers = true
            if case .catalog = remembered.body {
                // If it has nothing to say, what waits by the rules that it keeps goes on waiting.
                covers = !expected.required.isEmpty
                while rest.count > (covers ? 1 : 0), let frame = rest.popFirst() {
                    try live(frame, &stream, upTo: position - 1)
                }
            }
            if covers, stream.covered < position {
                if mayWait(stream) {
                    // Waiting changes are notified together with it.
                    let along = expectation(
                        stream.record, receivers[stream.receiver].app,
                        receivers[stream.receiver].kinds, since: .after(stream.covered),
                        upTo: position, floor: 0, owed: false)
                    expected.allowed.formUnion(along.allowed)
                }
                expected.mayBeEverything = mayForget(since: before, entry.app)
            }
            let frame = rest.popFirst()
            try check(
                frame?.content, expected, held, isNarrowed: isNarrowed,
                "catalog or reload")
            if let frame { name(frame.content, &stream, upTo: position) }
            if covers {
                try checkSaid(&stream, upTo: position)
                stream.covered = max(stream.covered, position)
            }
            if let frame { try send(frame, &stream) }
        }
    }

    /// Checks a notification of one name: it needs a change of some key that was not notified
    /// before.
    private func live(
        _ frame: (content: StaleSet, id: UInt64?), _ stream: inout OpenStream, upTo position: UInt64
    ) throws {
        checked("live")
        let sequence = frame.content.sequence
        guard !frame.content.all, frame.content.names.count == 1, sequence <= position,
            let name = frame.content.names.first
        else { throw violation("a live notification of \(frame.content)") }
        let receiver = receivers[stream.receiver]
        // The notification is for the latest change of its key, which must have this name and must
        // not have been notified before.
        guard sequence > stream.covered, case let entry = log[Int(sequence) - 1],
            entry.app == receiver.app, case .change(let change) = entry.body,
            let catalog = entry.catalog
        else { throw violation("\(name) at \(sequence) for no new change") }
        var keys: Set<[String]> = []
        for holding in Holding.all(of: stream.record.registration)
        where holding.kind == name.kind && receiver.kinds?.contains(holding.kind) ?? true {
            let hits = NaiveModel.hits(
                change, holding, attributes: stream.record.attributes, catalog)
            for hit in hits where hit.live == name { keys.insert(["\(hit.rule)"] + hit.key) }
        }
        if name.target == .activity { checked("an activity by its attributes") }
        // Without a window, all keys of the name share one notification. With one, each key may
        // need a notification of its own.
        let isCollapsed = (catalog.widget(kind: name.kind)?.collapseMilliseconds ?? 0) != 0
        let said = stream.said["\(sequence) \(name)", default: 0] + 1
        stream.said["\(sequence) \(name)"] = said
        guard said <= (isCollapsed ? keys.count : min(1, keys.count)) else {
            throw violation("\(name) at \(sequence) for no new change")
        }
        self.name(frame.content, &stream, upTo: position)
        try send(frame, &stream)
    }

    private func name(_ content: StaleSet, _ stream: inout OpenStream, upTo position: UInt64) {
        let receiver = receivers[stream.receiver]
        for (holding, _) in held(stream.record, receiver.app, receiver.kinds, upTo: position) {
            guard let catalog = catalog(of: receiver.app, upTo: position) else { continue }
            if content.all
                || content.names.contains(where: { holding.isNamed(by: $0, in: catalog) })
            {
                stream.named[holding] = max(stream.named[holding] ?? 0, content.sequence)
            }
        }
    }

    /// Whether a change that concerns the stream may wait in a window: its shard has not ended
    /// windows since for as long as one lasts.
    private func mayWait(_ stream: OpenStream) -> Bool {
        let receiver = receivers[stream.receiver]
        let held = held(
            stream.record, receiver.app, receiver.kinds, upTo: shards[stream.shard].position)
        return appliedAt[stream.shard].contains { sequence, time in
            let entry = log[Int(sequence) - 1]
            guard entry.app == receiver.app, case .change = entry.body, let catalog = entry.catalog
            else { return false }
            return held.contains { holding, _ in
                let collapse = catalog.widget(kind: holding.kind)?.collapseMilliseconds ?? 0
                return collapse > 0 && time > endedAt[stream.shard] - collapse
                    && hits(entry, holding, stream.record)
            }
        }
    }

    /// Checks that an id is not held back by windows of keys that are not the stream's own.
    func checkCurrent(_ stream: OpenStream, _ id: UInt64) throws {
        guard !mayWait(stream) else { return }
        if shards[stream.shard].nextWindowEnd != nil { checked("others wait") }
        if id < shards[stream.shard].position {
            throw violation("\(id) is held back by what others wait for")
        }
    }

    /// Checks that the stream was notified of everything up to `sequence` that concerns its client.
    func checkSaid(_ stream: inout OpenStream, upTo sequence: UInt64) throws {
        let receiver = receivers[stream.receiver]
        let start = max(stream.checkedUpTo, stream.covered)
        if start < sequence {
            checked("id covers")
            let held = held(
                stream.record, receiver.app, receiver.kinds, upTo: shards[stream.shard].position)
            for next in start..<min(sequence, head) where log[Int(next)].app == receiver.app {
                for (holding, _) in held where hits(log[Int(next)], holding, stream.record) {
                    if stream.named[holding] ?? 0 <= next {
                        throw violation(
                            "\(sequence) covers \(next + 1), but \(holding) was not told")
                    }
                }
            }
        }
        stream.checkedUpTo = max(stream.checkedUpTo, sequence)
    }

    /// Puts a frame into the pipe. Its id covers only notified changes, and never goes back.
    func send(
        _ frame: (content: StaleSet?, id: UInt64?), _ stream: inout OpenStream
    ) throws {
        stream.isSilent = false
        if stream.beforeTurn == nil { stream.beforeTurn = (stream.pipe.count, stream.lastID) }
        if let id = frame.id {
            if id < stream.lastID { throw violation("id \(id) after \(stream.lastID)") }
            try checkSaid(&stream, upTo: id)
            stream.lastID = id
        }
        var content = frame.content
        if sabotage == .dropsADelivery, content != nil, random.happens(40) { content = nil }
        stream.pipe.append((content, frame.id, epoch))
    }
}
