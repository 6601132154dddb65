import Foundation
import GatewayCore
import WidgetModel

/// The events of a post with their decisions by one catalog, made before the writer receives it.
package struct DecidedPost: Sendable {
    package let events: [CloudEvent]
    /// The events in the form stored in the log.
    package let payloads: [Data]
    /// For each event, the index of the earlier event in the post that it repeats.
    package let repetitions: [Int?]
    /// The rules that decided them; `nil` for an app without a catalog.
    package let ruleSet: RuleSet?
    /// The decision for each event; none for an app without a catalog. An event that raises too
    /// many keys may be a duplicate of one that was accepted under an earlier catalog.
    package let decisions: [Result<RuleSet.Decision, RuleSet.TooManyKeys>]
    /// The approximate memory used by events and decisions.
    let memoryBytes: Int

    /// The number of rules evaluated and keys raised before the thread is yielded.
    private static let workPerTurn = 4_000

    /// Whether deciding a single event of a post may take longer than a turn of a shared thread; an
    /// upper estimate from the number of rules for it and the values it carries.
    static func isLong(_ events: [CloudEvent], by ruleSet: RuleSet?) -> Bool {
        guard let ruleSet else { return false }
        return events.contains { event in
            let rules = ruleSet.ruleCount(ofEntity: event.change.entity)
            // A rule has few bindings, and the number of its combinations is limited.
            let combinations = event.change.attributes.values.reduce(1) { product, values in
                min(combinationsMax, product * (values.count + 1))
            }
            return rules * combinations > workPerTurn
        }
    }

    /// The approximate maximum of keys that one rule raises for a change.
    private static let combinationsMax = 512

    /// Decides the events of a post.
    ///
    /// - Throws: ``EngineError/invalid(_:)`` if they raise more keys together than a post may.
    init(
        _ events: [CloudEvent], _ payloads: [Data], repeating repetitions: [Int?],
        by ruleSet: RuleSet?, _ limits: Limits
    ) async throws {
        self.events = events
        self.payloads = payloads
        self.repetitions = repetitions
        self.ruleSet = ruleSet
        var decisions: [Result<RuleSet.Decision, RuleSet.TooManyKeys>] = []
        decisions.reserveCapacity(events.count)
        var memory = payloads.reduce(256) { $0 + $1.count + 256 }
        var (keys, work) = (0, 0)
        for event in ruleSet == nil ? [] : events {
            guard let ruleSet else { break }
            work += 4 + ruleSet.ruleCount(ofEntity: event.change.entity)
            do throws(RuleSet.TooManyKeys) {
                let decision = try ruleSet.decide(event.change, limits: limits)
                keys += decision.keys.count
                work += decision.keys.count
                memory += decision.keys.memoryBytes
                decisions.append(.success(decision))
            } catch {
                work += min(error.count, limits.changeKeysMax)
                decisions.append(.failure(error))
            }
            guard keys <= limits.postKeysMax else {
                throw EngineError.invalid(Faults(keysInPost: keys, limits))
            }
            if work >= Self.workPerTurn {
                work = 0
                await Task.yield()
            }
        }
        self.decisions = decisions
        memoryBytes = memory
    }
}

extension DecidedPost {
    /// Returns for each event of a post the earlier one that it repeats, if any.
    ///
    /// - Throws: ``EngineError/eventIDReused(_:)`` if an event has the id of an earlier one but
    ///   different data.
    static func repetitions(in events: [CloudEvent]) throws(EngineError) -> [Int?] {
        // The single event of a post cannot repeat another.
        guard events.count > 1 else { return [nil] }
        var posted: [EventIdentity: Int] = [:]
        posted.reserveCapacity(events.count)
        // Encoded once for each repeated event, however often it is repeated.
        var written: [Int: [UInt8]] = [:]
        var reused = Faults()
        let repetitions = events.indices.map { index -> Int? in
            let event = events[index]
            guard let earlier = posted.insertIfAbsent(index, for: EventIdentity(event)) else {
                return nil
            }
            let known = written[earlier] ?? events[earlier].change.json.serialized
            written[earlier] = known
            if known != event.change.json.serialized {
                reused.add("[\(index)].id", "was already used in this batch")
            }
            return earlier
        }
        guard reused.isEmpty else { throw EngineError.eventIDReused(reused) }
        return repetitions
    }
}

/// The identity that de-duplication compares: bytes, because Unicode treats some different strings
/// as equal.
private struct EventIdentity: Hashable {
    private let source: String
    private let id: String

    init(_ event: CloudEvent) {
        source = event.source
        id = event.id
    }

    static func == (left: Self, right: Self) -> Bool {
        left.id.hasSameBytes(as: right.id) && left.source.hasSameBytes(as: right.source)
    }

    func hash(into hasher: inout Hasher) {
        id.hashBytes(into: &hasher)
        source.hashBytes(into: &hasher)
    }
}

extension Dictionary {
    /// Returns the value of `key`, or stores `value` for it and returns `nil`.
    fileprivate mutating func insertIfAbsent(_ value: Value, for key: Key) -> Value? {
        func exchange(_ place: inout Value?) -> Value? {
            if let known = place { return known }
            place = value
            return nil
        }
        return exchange(&self[key])
    }
}
