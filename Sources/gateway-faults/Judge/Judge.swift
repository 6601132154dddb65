/// Judges a record by the promises of the wire, from nothing but what was sent and received: it
/// shares no rule, key or index with the gateway.
enum Judge {
    /// Returns every promise that the record breaks, and its figures.
    static func judge(_ record: Record) -> Verdict {
        let changes = ChangeHistory(record)
        var verdict = Verdict(violations: changes.violations, changes: changes.changeCount)
        var clients: [String: ClientHistory] = [:]
        var order: [String] = []
        var generation = 0
        func update(_ name: String, _ body: (inout ClientHistory) -> Void) {
            if clients[name] == nil { order.append(name) }
            body(&clients[name, default: ClientHistory(name, changes, generation: generation)])
        }
        for entry in record.entries {
            switch entry.event {
            case .posted(let attempt):
                switch attempt.outcome {
                case .accepted: break
                case .refused: verdict.refusedPosts += 1
                case .unknown: verdict.unansweredPosts += 1
                }
            case .catalog: break
            case .registering(let client, let number, let interests):
                update(client) { $0.registering(number, interests) }
            case .registered(let client, let number, let outcome):
                if outcome != .unknown { verdict.registrations += 1 }
                update(client) { $0.registered(number, outcome, at: entry.time) }
            case .told(let client, let telling):
                verdict.notifications += 1
                update(client) { $0.told(telling) }
            case .watermark(let client, let sequence):
                verdict.watermarks += 1
                update(client) { $0.moved(to: sequence) }
            case .logLost:
                for name in order { update(name) { $0.logLost(at: entry.time) } }
                generation += 1
            case .allExpected: for name in order { update(name) { $0.isAllExpected = true } }
            case .logKeeps: break
            case .unverifiable(let client, let reason):
                verdict.violations.append(
                    Violation(kind: .unverifiable, text: "\(client): \(reason)"))
            case .broken(let text):
                verdict.violations.append(Violation(kind: .broken, text: text))
            }
        }
        for name in order {
            update(name) { $0.end() }
            verdict.violations += clients[name]?.violations ?? []
            verdict.excused += clients[name]?.excused ?? 0
        }
        return verdict
    }
}
