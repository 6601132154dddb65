import GatewayCore
import GatewayDocuments
import WidgetModel

/// Counts the items that a change makes stale, their clients and the outcomes.
package struct ImpactSummary: Sendable {
    /// The maximum number of distinct kinds and of platforms; others are counted together.
    private static let namesMax = 500

    package private(set) var holders = 0
    private var widgets = 0
    private var clients = 0
    private var kinds: [String: Int] = [:]
    private var platforms: [String: Int] = [:]
    private var channels: [String: Int] = [:]
    private var confirmed = 0
    private var sent: [NotificationChannel: Int] = [:]
    private var collapsed: [UInt64: Int] = [:]
    private var withheld: [Outcome.Reason: Withheld] = [:]
    private var unreachable: [Outcome.Absence: Int] = [:]

    package init() {}
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

    /// The maximum number of later changes named; the rest are counted with the last.
    private static let collapsedMax = 100
    /// The maximum number of clients named for each outcome.
    private static let examplesMax = 5

    /// Counts a client, once.
    mutating func count(_ record: ClientRecord) {
        clients += 1
        Self.count(record.registration.platform, &platforms)
    }

    /// Counts an item of a client, once.
    ///
    /// - Parameter hasStream: Whether a stream is open for the item.
    mutating func count(
        _ item: Subscription, of record: ClientRecord, hasStream: Bool, _ outcome: Outcome
    ) {
        holders += 1
        // A client may state any number.
        let (sum, isTooMuch) = widgets.addingReportingOverflow(item.count)
        widgets = isTooMuch ? .max : sum
        Self.count(item.kind, &kinds)
        let channel =
            hasStream
            ? .stream : item.pushChannel(in: record.registration) ?? NotificationChannel.poll
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

    // MARK: Documents

    /// The holders as a document.
    package var summary: SubscriptionSummary {
        var summary = SubscriptionSummary()
        summary.count = holders
        summary.widgets = widgets
        summary.clients = clients
        summary.kinds = JSONMap(sorting: kinds)
        summary.platforms = JSONMap(sorting: platforms)
        summary.channels = JSONMap(sorting: channels)
        return summary
    }

    package func outcomes(at time: MonotonicTime, withExamples: Bool) -> OutcomeSummary {
        var summary = OutcomeSummary()
        summary.confirmed = confirmed
        summary.sent = sent.values.reduce(0, +)
        summary.collapsed = collapsed.values.reduce(0, +)
        summary.withheld = withheld.values.reduce(0) { $0 + $1.holders }
        summary.unreachable = unreachable.values.reduce(0, +)
        summary.sentBy = Self.map(sent)
        summary.collapsedInto = collapsed.sorted { $0.key < $1.key }.map {
            OutcomeSummary.Collapsed(sequence: $0.key, holders: $0.value)
        }
        summary.withheldFor = withheld.sorted { $0.key.rawValue < $1.key.rawValue }.map {
            var document = OutcomeSummary.Withheld()
            document.reason = $0.key.rawValue
            document.holders = $0.value.holders
            if $0.value.last > .min {
                document.from = time.text($0.value.first)
                document.until = time.text($0.value.last)
            }
            return document
        }
        summary.unreachableFor = Self.map(unreachable)
        if withExamples { summary.examples = JSONMap(sorting: examples) }
        return summary
    }

    private static func map(_ counts: [some RawRepresentable<String> & Hashable: Int]) -> JSONMap<
        Int
    > {
        JSONMap(
            sorting: Dictionary(uniqueKeysWithValues: counts.map { ($0.key.rawValue, $0.value) }))
    }
}

/// Converts times of the monotonic clock to wall-clock times.
package struct MonotonicTime: Sendable {
    /// The same moment on both clocks, in milliseconds.
    let wall: Int64
    let monotonic: Int64

    /// The time in RFC 3339; a moment in the past counts as now.
    func text(_ moment: Int64) -> String {
        let ahead = moment.subtractingReportingOverflow(monotonic)
        let day: Int64 = 86_400_000
        return timestamp(wall + min(max(ahead.overflow ? 0 : ahead.partialValue, 0), 366 * day))
    }
}

extension Outcome {
    /// The name of the outcome in documents.
    var name: String {
        switch self {
        case .confirmed: "confirmed"
        case .sent: "sent"
        case .collapsed: "collapsed"
        case .withheld: "withheld"
        case .unreachable: "unreachable"
        }
    }

    /// Sets the members of a document that describe the outcome.
    func describe(in item: inout ExplainedItem, at time: MonotonicTime) {
        item.outcome = name
        switch self {
        case .confirmed: break
        case .sent(let channel): item.channel = channel.rawValue
        case .collapsed(let into): item.into = into
        case .withheld(let reason, let until):
            item.reason = reason.rawValue
            item.until = until.map(time.text)
        case .unreachable(let absence): item.reason = absence.rawValue
        }
    }
}
