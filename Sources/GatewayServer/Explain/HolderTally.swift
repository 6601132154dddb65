import GatewayCore
import WidgetModel

/// How many hold what a change makes stale, and what became of it for them.
struct HolderTally: Sendable {
    /// Names that are told apart, of kinds and of platforms; others are counted together.
    private static let namesMax = 500

    private(set) var holders = 0
    private var widgets = 0
    private var clients = 0
    private var kinds: [String: Int] = [:]
    private var platforms: [String: Int] = [:]
    private var channels: [String: Int] = [:]
    private var confirmed = 0
    private var sent: [Outcome.Channel: Int] = [:]
    private var collapsed: [UInt64: Int] = [:]
    private var withheld: [Outcome.Reason: Withheld] = [:]
    private var unreachable: [Outcome.Absence: Int] = [:]
    private(set) var examples: [String: [String]] = [:]

    private struct Withheld {
        var holders = 0
        var first = Int64.max
        var last = Int64.min

        mutating func count(_ until: Int64?) {
            holders += 1
            guard let until else { return }
            first = min(first, until)
            last = max(last, until)
        }
    }

    /// Later changes that are named; the rest are counted with the last.
    private static let collapsedMax = 100
    /// Clients that are named for each outcome.
    private static let examplesMax = 5

    /// Counts a client, once.
    mutating func count(_ record: ClientRecord) {
        clients += 1
        Self.count(record.registration.platform, &platforms)
    }

    /// Counts something of a client, once.
    ///
    /// - Parameter hasStream: Whether a stream is open for it.
    mutating func count(
        _ item: HeldItem, of record: ClientRecord, hasStream: Bool, _ outcome: Outcome
    ) {
        holders += 1
        // A client may say any number.
        let (sum, isTooMuch) = widgets.addingReportingOverflow(item.count)
        widgets = isTooMuch ? .max : sum
        Self.count(item.kind, &kinds)
        let channel =
            hasStream ? .stream : item.pushChannel(in: record.registration) ?? Outcome.Channel.poll
        channels[channel.rawValue, default: 0] += 1
        switch outcome {
        case .confirmed: confirmed += 1
        case .sent(let channel): sent[channel, default: 0] += 1
        case .collapsed(let into):
            let isNamed = collapsed[into] != nil || collapsed.count < Self.collapsedMax
            collapsed[isNamed ? into : collapsed.keys.max() ?? into, default: 0] += 1
        case .withheld(let reason, let until):
            withheld[reason, default: Withheld()].count(until)
        case .unreachable(let absence): unreachable[absence, default: 0] += 1
        }
        if examples[outcome.name, default: []].count < Self.examplesMax,
            examples[outcome.name]?.last != record.client
        {
            examples[outcome.name, default: []].append(record.client)
        }
    }

    private static func count(_ name: String, _ counts: inout [String: Int]) {
        let isNamed = counts[name] != nil || counts.count < namesMax
        counts[isNamed ? name : "", default: 0] += 1
    }

    // MARK: As JSON

    /// Who holds it.
    var holdersJSON: JSONValue {
        [
            "count": .integer(Int64(holders)), "widgets": .integer(Int64(widgets)),
            "clients": .integer(Int64(clients)), "kinds": Self.json(kinds),
            "platforms": Self.json(platforms), "channels": Self.json(channels),
        ]
    }

    /// What became of it; the five numbers at the front add up to the holders.
    func outcomesJSON(_ time: MonotonicTime, withExamples: Bool) -> JSONValue {
        let total = { (counts: [Int]) in JSONValue.integer(Int64(counts.reduce(0, +))) }
        var object: JSONObject = [
            "confirmed": .integer(Int64(confirmed)), "sent": total(Array(sent.values)),
            "collapsed": total(Array(collapsed.values)),
            "withheld": total(withheld.values.map(\.holders)),
            "unreachable": total(Array(unreachable.values)),
            "sentBy": Self.json(
                Dictionary(uniqueKeysWithValues: sent.map { ($0.key.rawValue, $0.value) })),
            "collapsedInto": .array(
                collapsed.sorted { $0.key < $1.key }.map {
                    [
                        "sequence": .integer(Int64(clamping: $0.key)),
                        "holders": .integer(Int64($0.value)),
                    ]
                }),
            "withheldFor": .array(
                withheld.sorted { $0.key.rawValue < $1.key.rawValue }.map { reason, held in
                    var object: JSONObject = [
                        "reason": .string(reason.rawValue),
                        "holders": .integer(Int64(held.holders)),
                    ]
                    if held.last > .min {
                        object["from"] = .string(time.text(held.first))
                        object["until"] = .string(time.text(held.last))
                    }
                    return .object(object)
                }),
            "unreachableFor": Self.json(
                Dictionary(uniqueKeysWithValues: unreachable.map { ($0.key.rawValue, $0.value) })),
        ]
        if withExamples {
            var named = JSONObject()
            for (name, clients) in examples.sorted(by: { $0.key < $1.key }) {
                named[name] = .array(clients.map { .string($0) })
            }
            object["examples"] = .object(named)
        }
        return .object(object)
    }

    private static func json(_ counts: [String: Int]) -> JSONValue {
        var object = JSONObject()
        for (name, count) in counts.sorted(by: { $0.key < $1.key }) {
            object[name] = .integer(Int64(count))
        }
        return .object(object)
    }
}

/// Turns moments of the monotonic clock into those that people read.
struct MonotonicTime: Sendable {
    /// The same moment by both clocks, in milliseconds.
    let wall: Int64
    let monotonic: Int64

    /// RFC 3339; a moment that is past counts as now.
    func text(_ moment: Int64) -> String {
        let ahead = moment.subtractingReportingOverflow(monotonic)
        let day: Int64 = 86_400_000
        return timestamp(wall + min(max(ahead.overflow ? 0 : ahead.partialValue, 0), 366 * day))
    }
}

extension Outcome {
    /// Which of the five.
    var name: String {
        switch self {
        case .confirmed: "confirmed"
        case .sent: "sent"
        case .collapsed: "collapsed"
        case .withheld: "withheld"
        case .unreachable: "unreachable"
        }
    }

    func json(_ time: MonotonicTime) -> JSONValue {
        var object: JSONObject = ["outcome": .string(name)]
        switch self {
        case .confirmed: break
        case .sent(let channel): object["channel"] = .string(channel.rawValue)
        case .collapsed(let into): object["into"] = .integer(Int64(clamping: into))
        case .withheld(let reason, let until):
            object["reason"] = .string(reason.rawValue)
            if let until { object["until"] = .string(time.text(until)) }
        case .unreachable(let absence): object["reason"] = .string(absence.rawValue)
        }
        return .object(object)
    }
}
