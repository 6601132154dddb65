import CoreMetrics
import GatewayCore
import GatewayOperations
import Synchronization

/// The effect of stored rows, for ``LogApplier``.
enum LogEffect: Sendable {
    case changes(AppliedPost)
    /// An operator's reload, or an entry that changes nothing.
    case reload(LogEntry, ReloadTrace?)
    /// A catalog that came into force.
    case catalog(LogEntry, RuleSet, CatalogDocument)
    /// The removal of an app with its clients.
    case removal(LogEntry)
    case registration(AppliedRegistration)
    case clientsRemoved([ClientKey])
    /// A client was seen by another gateway, at a time in milliseconds since 1970.
    case seen(ClientKey, at: Int64)
    case epoch(EpochLedger.Epoch, voidsOlder: Bool)
}

/// The changes of one post as they were stored.
struct AppliedPost: Sendable {
    private(set) var messages: [LogMessage]
    private(set) var decisions: [(sequence: UInt64, decision: RuleSet.Decision)]
    /// The rules that decided them.
    let ruleSet: RuleSet
    /// The time in milliseconds since 1970.
    let acceptedAt: Int64
    let traced: PostTrace.Decided?

    /// Adds the changes behind these.
    mutating func append(_ other: AppliedPost) {
        messages += other.messages
        decisions += other.decisions
    }
}

struct AppliedRegistration: Sendable {
    let record: ClientRecord
    let key: ClientKey
    /// The time at which the client was seen, in milliseconds since 1970; `nil` if it does not
    /// count as seen.
    let seenAt: Int64?
    /// Whether only the client's confirmations changed.
    let confirms: Bool
    /// Records that event loops have applied it.
    let receipts: ShardReceipts
}

/// Applies stored rows in memory and hands them to every event loop, whether this gateway wrote or
/// repeated them. Used on one thread, in the order of the log.
package final class LogApplier: Sendable {
    private struct Pending {
        var messages: [LogMessage] = []
        var traced: [PostTrace.Decided] = []
    }

    private let registry: Registry
    private let catalogs: AppCatalogs
    private let accepted: AcceptedChanges
    private let metrics: GatewayMetrics
    let publisher: LogPublisher
    private let epochs: EpochHistory
    private let pending = Mutex(Pending())

    init(
        registry: Registry, catalogs: AppCatalogs, accepted: AcceptedChanges,
        metrics: GatewayMetrics, publisher: LogPublisher, epochs: EpochHistory
    ) {
        self.registry = registry
        self.catalogs = catalogs
        self.accepted = accepted
        self.metrics = metrics
        self.publisher = publisher
        self.epochs = epochs
    }

    /// The number of event loops that receive each message.
    var loopCount: Int { publisher.loopCount }

    /// Applies rows, and keeps their messages for ``publish()``.
    ///
    /// - Parameter head: The head of the log with them.
    func apply(_ effect: LogEffect, head: UInt64) {
        switch effect {
        case .changes(let post):
            metrics.decisions.increment(
                by: post.decisions.reduce(0) { $0 + $1.decision.keys.count })
            accepted.note(post.decisions, by: post.ruleSet, at: post.acceptedAt)
            add(post.messages, post.traced)
        case .reload(let entry, let trace):
            accepted.note(entry.acceptedAt, of: entry.sequence, through: entry.sequence)
            add([.entry(entry)], trace?.committed(at: entry.sequence, loops: loopCount))
        case .catalog(let entry, let ruleSet, let document):
            catalogs.install(ruleSet, document)
            add([.entry(entry)])
        case .removal(let entry):
            catalogs.remove(app: entry.app, at: entry.sequence)
            registry.removeAll(of: entry.app)
            add([.entry(entry)])
        case .registration(let one):
            registry.put(one.record, app: one.key.app, at: head)
            if let seenAt = one.seenAt { registry.noteSeen(one.key, now: seenAt, isStored: true) }
            add([
                one.confirms
                    ? .confirmed(one.record, app: one.key.app, receipts: one.receipts)
                    : .registered(one.record, app: one.key.app, receipts: one.receipts)
            ])
        case .clientsRemoved(let keys):
            for key in keys { registry.remove(key) }
            add(keys.map { .removed($0) })
        case .seen(let key, let at): registry.noteStored(key, seenAt: at)
        case .epoch(let epoch, let voidsOlder):
            // Behind the entries of its commit.
            publish()
            open(epoch, voidsOlder: voidsOlder)
        }
    }

    /// Begins an epoch, and announces the era that it may begin.
    func open(_ epoch: EpochLedger.Epoch, voidsOlder: Bool) {
        epochs.open(epoch, voidsOlder: voidsOlder) { era in
            registry.forgetHearing()
            publisher.publish(era)
        }
    }

    private func add(_ messages: [LogMessage], _ traced: PostTrace.Decided? = nil) {
        pending.withLock { pending in
            if pending.messages.isEmpty {
                pending.messages = messages
            } else {
                pending.messages += messages
            }
            if let traced { pending.traced.append(traced) }
        }
    }

    /// Hands over what was applied: once for each commit, whatever its number of jobs.
    func publish() {
        let taken = pending.withLock { pending in
            defer { pending = Pending() }
            return pending
        }
        guard !taken.messages.isEmpty else { return }
        publisher.publish(taken.messages, taken.traced)
    }
}
