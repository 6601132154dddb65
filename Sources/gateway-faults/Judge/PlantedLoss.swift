/// Removes a notification from a record, to see that the judge reports the loss.
///
/// Nothing else in the record may cover that notification: it is the only one of its change for a
/// client that got a later cursor and whose registration has not changed since.
enum PlantedLoss {
    /// Returns the record without one such notification, and words for it; `nil` when it has none.
    static func plant(
        in record: Record, using generator: inout some RandomNumberGenerator
    ) -> (record: Record, text: String)? {
        let candidates = candidates(record).shuffled(using: &generator)
        guard let choice = candidates.first(where: { !isToldBefore(record, $0.index) }) else {
            return nil
        }
        var planted = record
        planted.entries.remove(at: choice.index)
        return (planted, choice.text)
    }

    private static func candidates(_ record: Record) -> [(index: Int, text: String)] {
        let history = ChangeHistory(record)
        // Read from the end: what is met first is what no later entry covers.
        var watermarks: [String: UInt64] = [:]
        var covered: [String: [ReceivedNotification.Target: UInt64]] = [:]
        var candidates: [(index: Int, client: String, interest: Interest, sent: Double)] = []
        for (index, entry) in record.entries.enumerated().reversed() {
            switch entry.event {
            case .logLost: return []
            case .watermark(let client, let sequence):
                watermarks[client] = max(watermarks[client] ?? 0, sequence)
            case .told(let client, let telling):
                defer {
                    for target in telling.targets {
                        let before = covered[client]?[target] ?? 0
                        covered[client, default: [:]][target] = max(before, telling.sequence)
                    }
                }
                guard telling.targets.count == 1,
                    case .interest(let interest)? = telling.targets.first,
                    (watermarks[client] ?? 0) >= telling.sequence,
                    let change = history.latest(interest.subject, upTo: telling.sequence, 0),
                    change.sequence == telling.sequence
                else { continue }
                let others = covered[client] ?? [:]
                let again =
                    [.interest(interest), .kind(interest.kind), .all]
                    .map { others[$0] ?? 0 }.max() ?? 0
                guard again < telling.sequence else { continue }
                candidates.append((index, client, interest, change.sent))
            default: break
            }
        }
        let registrations = lastRegistrations(record)
        return candidates.compactMap { candidate in
            guard let last = registrations[candidate.client], last.answered < candidate.sent,
                last.interests.contains(candidate.interest)
            else { return nil }
            return (candidate.index, "\(candidate.client) was notified of \(candidate.interest)")
        }
    }

    /// The last registration of each client, and the time at which it was in force.
    private static func lastRegistrations(
        _ record: Record
    ) -> [String: (interests: Set<Interest>, answered: Double)] {
        var last: [String: (interests: Set<Interest>, answered: Double)] = [:]
        for entry in record.entries {
            switch entry.event {
            case .registering(let client, _, let interests): last[client] = (interests, .infinity)
            case .registered(let client, _, let outcome):
                if outcome != .unknown { last[client]?.answered = entry.time }
            default: break
            }
        }
        return last
    }

    /// Whether an earlier notification covers the one at `index` as well.
    private static func isToldBefore(_ record: Record, _ index: Int) -> Bool {
        guard case .told(let client, let telling) = record.entries[index].event else { return true }
        return record.entries[..<index].contains { entry in
            guard case .told(client, let other) = entry.event else { return false }
            return other.sequence >= telling.sequence
                && other.targets.contains { target in
                    if case .interest = target { return telling.targets.contains(target) }
                    return true
                }
        }
    }
}
