import WidgetModel

@testable import GatewayCore

/// The names that a catch-up has to contain, and those that it may contain beyond them.
struct Expectation {
    /// Whether everything is stale, so that only a complete reload is right.
    var everything = false
    /// Whether versions may have been forgotten, so that a complete reload is allowed.
    var mayBeEverything = false
    var required: Set<InvalidationTarget> = []
    var allowed: Set<InvalidationTarget> = []
}

extension HistoryFixture {
    /// Returns the holdings of a client that are awake, among the kinds it asks for.
    func held(
        _ record: ClientRecord, _ app: String, _ kinds: Set<String>?, upTo position: UInt64
    ) -> [(holding: Holding, target: Target)] {
        guard let catalog = catalog(of: app, upTo: position) else { return [] }
        return Holding.all(of: record.registration).compactMap { holding in
            guard kinds?.contains(holding.kind) ?? true,
                let target = holding.target(in: catalog)
            else { return nil }
            return (holding, target)
        }
    }

    /// Whether a bounded window may have forgotten a change after `sequence`. It forgets the oldest
    /// quarter, so three quarters of its keys are newer.
    func mayForget(since sequence: UInt64, _ app: String) -> Bool {
        guard isOverflowing else { return false }
        let raised = log.dropFirst(Int(sequence)).filter { $0.app == app }
        return raised.reduce(0) { $0 + $1.keyCount } >= 12
    }

    /// Returns the stale names at `position` for a client that applied everything up to `point`.
    func expectation(
        _ record: ClientRecord, _ app: String, _ kinds: Set<String>?, since point: ResumePoint,
        upTo position: UInt64, floor: UInt64, owed: Bool
    ) -> Expectation {
        var result = Expectation()
        let held = held(record, app, kinds, upTo: position)
        guard !held.isEmpty else { return result }
        guard case .after(let cursor) = point, cursor >= floor else {
            result.everything = true
            return result
        }
        result.mayBeEverything = mayForget(since: cursor, app)
        for (holding, target) in held {
            let whole = holding.whole(target)
            // A set is owed from its confirmation on, and a widget from the cursor on.
            var allowedAfter = cursor
            var requiredAfter = cursor
            if holding.form == .set, let confirmed = record.confirmed[holding.kind] {
                allowedAfter = owed ? min(cursor, confirmed) : cursor
                requiredAfter = owed ? confirmed : max(cursor, confirmed)
                if owed, confirmed < floor {
                    result.required.insert(whole)
                    result.allowed.insert(whole)
                }
                if owed, mayForget(since: confirmed, app) { result.allowed.insert(whole) }
            }
            var sequence = max(allowedAfter, floor)
            while sequence < position {
                let entry = log[Int(sequence)]
                sequence += 1
                guard entry.app == app else { continue }
                var names: Set<InvalidationTarget> = []
                switch entry.body {
                // A reload is notified once. Only changes that hit a set are owed until it is
                // confirmed.
                case .reload(.everything), .reload(.client(record.client)):
                    result.everything = result.everything || sequence > cursor
                case .reload: if hits(entry, holding, record) { names = [whole] }
                case .catalog: if hits(entry, holding, record) { names = [whole] }
                case .change(let change):
                    guard let catalog = entry.catalog else { continue }
                    let hits = NaiveModel.hits(
                        change, holding, attributes: record.attributes, catalog)
                    names = Set(hits.map(\.caughtUp))
                }
                result.allowed.formUnion(names)
                if sequence > requiredAfter { result.required.formUnion(names) }
            }
        }
        return result
    }

    /// Checks that a notification contains what it had to, and nothing that it must not.
    func check(
        _ said: StaleSet?, _ expected: Expectation, _ held: [(holding: Holding, target: Target)],
        isNarrowed: Bool, _ what: String
    ) throws {
        checked(what)
        let said = said ?? StaleSet()
        let wholes = Set(held.map { $0.holding.whole($0.target) })
        // Of too many names only the kinds are left.
        let saysWhole =
            Set(said.names) == wholes
            || wholes.count > limits.entriesMax
                && Set(said.names) == Set(wholes.map { InvalidationTarget($0.target, $0.kind) })
        if said.names.contains(where: { $0.activityID != nil }) { checked("an activity by its id") }
        if said.all, !said.names.isEmpty { throw violation("\(what): names beside all") }
        if expected.everything || (expected.mayBeEverything && said.all) {
            let isWhole = isNarrowed && saysWhole
            let isAll = said.all && (!isNarrowed || wholes.count > limits.kindsMax)
            guard isAll || isWhole || expected.mayBeEverything else {
                throw violation("\(what): everything is stale, but it says \(said)")
            }
            return
        }
        if isNarrowed, expected.mayBeEverything, saysWhole { return }
        let allowed = expected.allowed.filter { name in
            name.parameters.isEmpty
                || !expected.allowed.contains(InvalidationTarget(name.target, name.kind))
        }
        let kinds = Set(expected.allowed.map { InvalidationTarget($0.target, $0.kind) })
        if said.all {
            guard kinds.count > limits.kindsMax || allowed.count > limits.kindsMax else {
                throw violation("\(what): all is too much, only \(expected.allowed)")
            }
            return
        }
        if said.names.count > max(limits.entriesMax, limits.kindsMax) {
            throw violation("\(what): too many words")
        }
        if said.names.count != Set(said.names).count { throw violation("\(what): a name twice") }
        for name in expected.required
        where !said.names.contains(name)
            && !said.names.contains(InvalidationTarget(name.target, name.kind))
        {
            throw violation("\(what): \(name) is missing in \(said)")
        }
        for name in said.names where !expected.allowed.contains(name) {
            let isBounded =
                name.parameters.isEmpty && expected.allowed.count > limits.entriesMax
                && kinds.contains(name)
            if !isBounded { throw violation("\(what): \(name) is too much in \(said)") }
        }
    }
}
