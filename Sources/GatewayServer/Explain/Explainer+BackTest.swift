import GatewayCore
import GatewayStorage
import WidgetModel

/// Holds a proposed catalog against what happened.
extension Explainer {
    /// Changes that are decided between two moments at which others may use the thread.
    private static let changesPerTurn = 16
    /// Rows that are read from the log at once.
    private static let rowsPerRead = 2_000

    /// What the changes of an app since a moment would have come to, by the catalog in force and by
    /// another.
    ///
    /// Costs reading and deciding these changes twice, and then a look at every registered client as
    /// explaining a change does. One at a time, and not while a change is explained.
    ///
    /// - Parameters:
    ///   - since: In milliseconds since 1970.
    ///   - isWanted: Whether somebody still waits for the answer.
    /// - Throws: 404 without a catalog, 503 while too many wait, `StoreError`;
    ///   `CancellationError` when it is not wanted.
    func difference(
        to catalog: Catalog, app: String, since: Int64, while isWanted: () -> Bool
    ) async throws -> JSONValue {
        guard let present = sequencer.ruleSet(of: app) else { throw Problem.unknownApp }
        try await turns.begin(app: app)
        defer { turns.end() }
        let (store, head) = (sequencer.store, sequencer.store.head)
        let proposed = RuleSet(
            catalog, sequence: head + 1, replacing: nil, hash: sequencer.hash)
        var sides = [present, proposed].map {
            BackTest($0, limits: sequencer.limits, terms: terms, hash: sequencer.hash)
        }
        let first = max(
            try await store.lastSequence(acceptedBefore: since), sequencer.removal(of: app))
        var (last, changes, isCut) = (first, 0, false)
        reading: while last < head {
            guard isWanted() else { throw CancellationError() }
            let rows = try await store.log(after: last, through: head, limit: Self.rowsPerRead)
            // The log's beginning was removed meanwhile.
            guard let end = rows.last else { break }
            for row in rows where row.app == app && row.type == .change {
                let change = try LogPayload.readChange(row.payload, limits: .none).change
                for index in sides.indices {
                    sides[index].replay(change, at: row.sequence, time: row.acceptedAt)
                }
                changes += 1
                if changes.isMultiple(of: Self.changesPerTurn) {
                    guard isWanted() else { throw CancellationError() }
                    await Task.yield()
                }
                if sides.contains(where: \.isFull) {
                    (last, isCut) = (row.sequence, true)
                    break reading
                }
            }
            last = end.sequence
            await Task.yield()
        }
        for index in sides.indices { sides[index].finish() }
        for part in 0..<Registry.partCount {
            guard isWanted() else { throw CancellationError() }
            for client in sequencer.registry.clients(of: app, part: part) {
                for index in sides.indices { sides[index].count(client.record) }
            }
            await Task.yield()
        }
        var object: JSONObject = [
            "since": .string(timestamp(since)), "after": .integer(Int64(clamping: first)),
            "through": .integer(Int64(clamping: last)), "changes": .integer(Int64(changes)),
            "cut": .bool(isCut), "warnings": .array(catalog.warnings.map(\.json)),
        ]
        object["now"] = sides[0].json
        object["proposed"] = sides[1].json
        object["kinds"] = .array(Self.kinds(sides[0], sides[1]))
        return .object(object)
    }

    private var terms: BackTest.Terms {
        BackTest.Terms(pushTerms())
    }

    private static func kinds(_ now: BackTest, _ proposed: BackTest) -> [JSONValue] {
        let subjects = Set(now.figures.keys).union(proposed.figures.keys).sorted {
            ($0.kind, $0.target.rawValue) < ($1.kind, $1.target.rawValue)
        }
        return subjects.map { subject in
            var object: JSONObject = [
                "kind": .string(subject.kind), "target": .string(subject.target.name),
            ]
            if let figures = now.figures[subject] { object["now"] = figures.json }
            if let figures = proposed.figures[subject] { object["proposed"] = figures.json }
            return .object(object)
        }
    }
}

extension BackTest {
    fileprivate var json: JSONValue {
        [
            "unmatched": .integer(Int64(unmatched)), "broad": .integer(Int64(broad)),
            "refused": .integer(Int64(refused)),
        ]
    }
}

extension BackTest.Figures {
    fileprivate var json: JSONValue {
        [
            "holders": .integer(Int64(holders)), "changes": .integer(Int64(changes)),
            "reloads": .integer(Int64(reloads)), "pushes": .integer(Int64(pushes)),
            "withheld": .integer(Int64(withheld)),
        ]
    }
}
