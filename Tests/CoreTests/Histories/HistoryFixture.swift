import CatalogModel
import GatewayTestSupport
import WidgetModel

@testable import GatewayCore

/// A broken promise, with all that is needed to reproduce it.
struct Violation: Error, CustomStringConvertible {
    let description: String
}

/// One entry of the log as the model remembers it: completely and forever.
struct Remembered {
    enum Body {
        case change(Change)
        case catalog(Catalog)
        case reload(ReloadScope)
    }

    let app: String
    let body: Body
    /// The current catalog before this entry.
    let catalog: Catalog?
    /// The number of keys that the entry bumped.
    let keyCount: Int
    /// The entry as the shards get it.
    let entry: LogEntry
}

/// A message to a shard, in commit order.
enum ShardMessage {
    case entry(LogEntry)
    case registered(ClientRecord, app: String)
    case confirmed(ClientRecord, app: String)
    case removed(client: String, app: String)
    case sealed(SealedVersions)
}

/// A stream that a program asked for, and that its shard has not opened yet.
struct StreamRequest {
    let shard: Int
    /// The current registration at the time when the request was read.
    let record: ClientRecord
    /// The attributes that the token of the request vouches for.
    let terms: RegistrationTerms
    /// The position to resume from, as judged in that epoch.
    let point: ResumePoint
    let epoch: EpochID
}

/// A program that follows the rules: it keeps a cursor and rebuilds what it is notified of.
struct Receiver {
    let app: String
    let client: String
    let kinds: Set<String>?
    var cursor: Cursor?
    /// The items that are stale on its screen and were not notified yet, with the sequence since
    /// when.
    var dirty: [Holding: UInt64] = [:]
    var stream: Int?
    /// The attributes that its token vouches for.
    var claims: [String: [String]] = [:]
    var request: StreamRequest?

    var isIdle: Bool { stream == nil && request == nil }
}

/// An open stream, its pipe, and the notifications sent on it.
struct OpenStream {
    let id: StreamID
    let shard: Int
    let receiver: Int
    var record: ClientRecord
    /// The frames that were sent and not read yet.
    var pipe: [(content: StaleSet?, id: UInt64?, epoch: EpochID)] = []
    /// The id last sent, or before the first one the id that the stream resumed from.
    var lastID: UInt64
    /// The sequence up to which every id was checked.
    var checkedUpTo: UInt64
    /// The sequence up to which a catch-up covered everything.
    var covered: UInt64 = 0
    /// The number of notifications of each name for each change.
    var said: [String: Int] = [:]
    /// For each holding, the sequence up to which notifications named it.
    var named: [Holding: UInt64] = [:]
    var isLagging = false
    /// Whether nothing was sent yet.
    var isSilent = true
    /// Whether the client was removed, so that nothing more is sent.
    var isEnded = false
    /// The pipe's length and the id before this turn, for a turn that does not fit.
    var beforeTurn: (pipe: Int, lastID: UInt64)?
}

/// A gateway made of the real core, clients that follow the rules, and a model that remembers
/// everything. Every step draws the next event from the generator.
final class HistoryFixture {
    /// Deliberate faults that the checker must find.
    enum Sabotage: CaseIterable {
        case dropsADelivery
        case coversTooFar
        case sendsToAnother
        case forgetsARegistration
        /// Opens a stream with the registration that was current when its request was read.
        case opensByWhatWasRead
        /// Moves a stream to an older registration that its shard takes later.
        case goesBackToAnOlder
        case keepsARemovedClient
        case skipsAnEntry
        /// Lets the windows of any key hold back the ids of all streams.
        case holdsBackOthers
        /// Seals versions without those of some changes.
        case sealsTooFew
        case heartbeatsAhead
    }

    let seed: UInt64
    var random: SplitMix64
    let sabotage: Sabotage?
    var sabotageDone = false
    let apps = ["one", "two"]
    let limits: CoreLimits
    let isOverflowing: Bool
    let hash = SipHash(1, 2)
    let seal = CursorSeal(SipHash(3, 4))

    var log: [Remembered] = []
    /// The sequence up to which entries were removed from disk.
    var retained: UInt64 = 0
    /// For each running shard, the sequence up to which it knows no changes.
    var floors: [UInt64] = []
    /// For each running shard, when it applied each entry, and when it last ended windows.
    var appliedAt: [[UInt64: Int64]] = []
    var endedAt: [Int64] = []
    var decider: Decider
    var ledger: EpochLedger
    /// The model's own list of epochs: the sequence that opened each one, and whether it is void.
    var naiveEpochs: [(id: EpochID, openedAt: UInt64, isVoid: Bool)] = []
    var records: [String: ClientRecord] = [:]
    var shards: [Shard] = []
    var compactor = VersionCompactor(floor: 0)
    /// The versions that were sealed and not handed to the shards yet.
    var lateSeals: [SealedVersions] = []
    var messages: [ShardMessage] = []
    var taken: [Int] = []
    var receivers: [Receiver] = []
    var streams: [Int: OpenStream] = [:]
    var nextStream = 0
    var now: Int64 = 1_000
    var transcript: UInt64 = 0
    var notes: [String] = []
    /// The number of checks of each kind, so that a test can tell that they took place.
    var checks: [String: Int] = [:]

    var head: UInt64 { UInt64(log.count) }

    init(seed: UInt64, sabotage: Sabotage? = nil) throws {
        self.seed = seed
        random = SplitMix64(seed: seed)
        self.sabotage = sabotage
        var limits = CoreLimits()
        isOverflowing = random.happens(15)
        if isOverflowing { limits.versionKeysMax = 16 }
        limits.versionRunKeys = random.pick([1, 4, 8_192])
        limits.entriesMax = random.pick([2, 4, 64])
        limits.kindsMax = random.pick([2, 8, 48])
        limits.collapseKeysMax = random.pick([1, 2, 1_000])
        self.limits = limits
        decider = Decider(hash: hash, limits: Limits())
        ledger = EpochLedger([])
        start()
        for app in apps {
            try append(app, .catalog(RandomInputs.catalog(app: app, &random)))
            for index in 0..<(app == "one" ? 2 : 1) {
                try register(app, "\(app)-\(index)")
            }
        }
        for app in apps {
            for (index, client) in [0, 0, 1].enumerated() where app == "one" || index == 0 {
                receivers.append(
                    Receiver(
                        app: app, client: "\(app)-\(client)",
                        kinds: random.happens(20) ? ["k0", "k3"] : nil))
            }
        }
    }

    func note(_ text: @autoclosure () -> String) {
        let line = text()
        notes.append(line)
        for byte in line.utf8 { transcript = (transcript ^ UInt64(byte)) &* 0x100_0000_01B3 }
    }

    func violation(_ what: String) -> Violation {
        Violation(
            description: "seed \(seed): \(what)\n" + notes.suffix(60).joined(separator: "\n")
        )
    }

    func checked(_ what: String) {
        checks[what, default: 0] += 1
    }

    // MARK: The gateway

    /// Starts the gateway in a new epoch, with the base catalogs and then the retained tail.
    func start() {
        let epoch = EpochID(
            // The ordinal is beyond those that an announced restore took away.
            ordinal: (naiveEpochs.last?.id.ordinal ?? 0)
                + (naiveEpochs.last?.isVoid ?? false ? 1_000 : 1),
            nonce: UInt32(truncatingIfNeeded: random.next()))
        naiveEpochs.append((epoch, head, false))
        ledger = EpochLedger(
            naiveEpochs.map { .init(id: $0.id, openedAt: $0.openedAt, isVoid: $0.isVoid) })
        decider = Decider(hash: hash, limits: Limits())
        streams = [:]
        for index in receivers.indices {
            receivers[index].stream = nil
            receivers[index].request = nil
        }
        let count = 1 + random.below(3)
        shards = (0..<count).map { _ in Shard(floor: retained, limits: limits) }
        compactor = VersionCompactor(floor: retained, limits: limits)
        floors = Array(repeating: retained, count: count)
        appliedAt = Array(repeating: [:], count: count)
        endedAt = Array(repeating: now, count: count)
        for app in apps {
            let base = log.prefix(Int(retained)).enumerated().reversed().first {
                if case .catalog = $1.body { $1.app == app } else { false }
            }
            guard let base, case .catalog(let catalog) = base.element.body else { continue }
            let ruleSet = decider.install(catalog, at: UInt64(base.offset + 1))
            for index in shards.indices { shards[index].install(ruleSet) }
            compactor.install(ruleSet)
        }
        for index in Int(retained)..<log.count {
            let entry = decided(log[index].app, log[index].body, at: UInt64(index + 1)).entry
            let sealed = compactor.apply(entry)
            for shard in shards.indices {
                shards[shard].apply(entry, now: now)
                if let sealed { shards[shard].adopt(sealed) }
            }
        }
        (messages, lateSeals) = ([], [])
        taken = Array(repeating: 0, count: count)
    }

    private func decided(
        _ app: String, _ body: Remembered.Body, at sequence: UInt64
    ) -> (entry: LogEntry, keyCount: Int) {
        let logged: LogEntry.Body
        var keyCount = 1
        switch body {
        case .change(let change):
            let decision = (try? decider.decide(change, app: app)) ?? RuleSet.Decision()
            keyCount = decision.keys.count
            logged = .change(decision, cause: nil)
        case .catalog(let catalog): logged = .catalog(decider.install(catalog, at: sequence))
        case .reload(let scope): logged = .reload(scope)
        }
        return (LogEntry(sequence: sequence, app: app, acceptedAt: 0, body: logged), keyCount)
    }

    /// Returns an entry that may bump nothing, although it did.
    func hollow(_ entry: LogEntry) -> LogEntry {
        guard random.happens(50), case .change = entry.body else { return entry }
        return LogEntry(
            sequence: entry.sequence, app: entry.app, acceptedAt: 0,
            body: .change(RuleSet.Decision(), cause: nil))
    }

    func catalog(of app: String) -> Catalog? {
        catalog(of: app, upTo: head)
    }

    func catalog(of app: String, upTo sequence: UInt64) -> Catalog? {
        for entry in log.prefix(Int(sequence)).reversed() where entry.app == app {
            if case .catalog(let catalog) = entry.body { return catalog }
            return entry.catalog
        }
        return nil
    }

    // MARK: Backends, operators and apps

    func append(_ app: String, _ body: Remembered.Body) throws {
        let before = catalog(of: app)
        let sequence = head + 1
        let (entry, keyCount) = decided(app, body, at: sequence)
        log.append(
            Remembered(app: app, body: body, catalog: before, keyCount: keyCount, entry: entry))
        messages.append(.entry(entry))
        if let sealed = compactor.apply(sabotage == .sealsTooFew ? hollow(entry) : entry) {
            lateSeals.append(sealed)
        }
        switch body {
        case .change(let change): note("\(sequence) \(app) change \(change.json.text)")
        case .catalog(let catalog):
            note("\(sequence) \(app) catalog \(catalog.widgets.map(\.summary))")
        case .reload(let scope): note("\(sequence) \(app) reload \(scope)")
        }
        for index in receivers.indices where receivers[index].app == app {
            guard let record = records[receivers[index].client] else { continue }
            if case .catalog(let catalog) = body {
                // An item that falls asleep is built anew when it wakes.
                receivers[index].dirty = receivers[index].dirty.filter { holding, _ in
                    holding.target(in: catalog) != nil
                }
            }
            for holding in Holding.all(of: record.registration)
            where receivers[index].dirty[holding] == nil
                && hits(log[Int(sequence) - 1], holding, record)
            {
                receivers[index].dirty[holding] = sequence
            }
        }
    }

    /// Whether an entry makes a holding stale, by the definitions.
    func hits(_ entry: Remembered, _ holding: Holding, _ record: ClientRecord) -> Bool {
        switch entry.body {
        case .change(let change):
            guard let catalog = entry.catalog else { return false }
            return !NaiveModel.hits(change, holding, attributes: record.attributes, catalog).isEmpty
        case .catalog(let catalog):
            return NaiveModel.isRenewed(holding, from: entry.catalog, to: catalog)
        case .reload(let scope):
            guard let catalog = entry.catalog, holding.target(in: catalog) != nil else {
                return false
            }
            return switch scope {
            case .everything: true
            case .kind(let kind): kind == holding.kind && holding.form != .set
            case .client(let client): client == record.client
            }
        }
    }

    // MARK: Cursors

    /// Returns the position where the gateway resumes a cursor, after checking it against the
    /// model's own list of epochs.
    func resume(_ cursor: Cursor?) throws -> ResumePoint {
        guard let cursor else { return .everything }
        guard seal.isGenuine(cursor) else { throw violation("an own cursor is not genuine") }
        let expected = naiveVerdict(on: cursor)
        let verdict = ledger.verdict(on: cursor, head: head)
        checked("cursor")
        if verdict != expected { throw violation("\(cursor) is \(verdict), not \(expected)") }
        switch verdict {
        case .holds(let sequence): return .after(sequence)
        case .isVoid: return .everything
        case .provesLostTail:
            note("\(cursor.sequence) proves a lost tail")
            let id = ledger.replaceAll(
                provedBy: cursor, head: head, nonce: UInt32(truncatingIfNeeded: random.next()),
                now: 0)
            for index in naiveEpochs.indices { naiveEpochs[index].isVoid = true }
            naiveEpochs.append((id, head, false))
            for shard in shards.indices { try voidCursors(shard) }
            return .everything
        }
    }

    private func naiveVerdict(on cursor: Cursor) -> EpochLedger.Verdict {
        let void = naiveEpochs.last { $0.isVoid }?.id.ordinal
        let first = naiveEpochs.first { !$0.isVoid && $0.id.ordinal > void ?? 0 }
        // Everything before the epochs that hold is void, remembered or not.
        if void != nil, let first, cursor.epoch.ordinal < first.id.ordinal { return .isVoid }
        guard let index = naiveEpochs.firstIndex(where: { $0.id == cursor.epoch }) else {
            return cursor.epoch.ordinal < naiveEpochs[0].id.ordinal ? .isVoid : .provesLostTail
        }
        if naiveEpochs[index].isVoid { return .isVoid }
        let end = index + 1 < naiveEpochs.count ? naiveEpochs[index + 1].openedAt : head
        return cursor.sequence <= end ? .holds(cursor.sequence) : .provesLostTail
    }

    /// The epoch of newly issued cursors. The ledger is never empty here, since a start opens an
    /// epoch.
    var epoch: EpochID { ledger.current?.id ?? EpochID(ordinal: 0, nonce: 0) }

    func cursor(_ sequence: UInt64) -> Cursor { seal.cursor(epoch, sequence) }
}

extension WidgetDeclaration {
    /// A short text of the declaration, for the notes of a failing history.
    var summary: String {
        let rules = dependsOn.map { rule in
            "\(rule.entity)\(rule.match.map { "\($0.attribute):\($0.binding)" })\(rule.properties)"
                + "\(rule.operations.map(\.rawValue).sorted())"
        }
        return "\(kind) \(configuration) \(collapseMilliseconds)ms \(rules) recs "
            + "\(recommendations.map { "\($0.count)" } ?? "-")"
    }
}
