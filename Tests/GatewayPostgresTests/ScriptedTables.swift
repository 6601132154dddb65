@testable import GatewayPostgres

/// A naive model of the tables that batches write besides the log.
struct ScriptedTables {
    /// A row of a registration.
    struct Row {
        var revision: Int64
        /// The head at which it was decided.
        var seq: Int64
        var content: RegistrationContent
    }

    private(set) var rows: [RegistrationKey: Row] = [:]
    private(set) var owners: [UInt128: RegistrationKey] = [:]
    private(set) var apps: [String: ProbeResult.App] = [:]

    /// Returns the row of a client unless its app was removed since.
    func live(_ key: RegistrationKey) -> Row? {
        rows[key].flatMap { $0.seq < (apps[key.app]?.removal ?? 0) ? nil : $0 }
    }

    /// Applies a batch that ends at `last`.
    mutating func apply(_ call: AppendCall, last: Int64) {
        var released: [(token: UInt128, key: RegistrationKey)] = []
        for registration in call.registrations {
            let kept = registration.content?.tokens ?? []
            released += (rows[registration.key]?.content.tokens ?? []).filter { !kept.contains($0) }
                .map { ($0, registration.key) }
            rows[registration.key] = registration.content.map {
                Row(revision: registration.revision, seq: call.probed, content: $0)
            }
        }
        for claim in call.claims {
            owners[claim.token] = call.registrations[Int(claim.place) - 1].key
        }
        for (token, key) in released where owners[token] == key { owners[token] = nil }
        for catalog in call.catalogs {
            let sequence = last - call.count + Int64(catalog.place)
            apps[catalog.app, default: .init()].newest = sequence
            if catalog.payload == nil { apps[catalog.app, default: .init()].removal = sequence }
        }
    }

    func read(_ reading: RowReading, head: Int64) -> RowOutcome {
        switch reading {
        case .rows(let keys, _):
            var found: [RegistrationKey: RegistrationRow] = [:]
            for key in keys { found[key] = row(key) }
            return .rows(found, head: head)
        case .clients(let attribute, let app, let after, let limit):
            let keys = rows.keys.filter {
                $0.app == app && $0.client > after
                    && live($0)?.content.attributes.contains(attribute) == true
            }
            return .clients(Array(keys.sorted { $0.client < $1.client }.prefix(Int(limit))))
        }
    }

    /// Returns a row as it is read.
    func row(_ key: RegistrationKey) -> RegistrationRow? {
        live(key).map { row in
            RegistrationRow(
                key: key, revision: row.revision, content: row.content,
                ownTokens: Set(row.content.tokens.filter { owners[$0] == key }), updatedAt: 0)
        }
    }
}
