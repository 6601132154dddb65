import WidgetModel

/// What must be true of a gateway, kept from nothing but the requests sent and the answers
/// received: it shares no rule, key or index with the gateway.
struct DeliveryModel {
    /// A client and what it holds: character -> the sequence at which it was built.
    private var holdings: [String: [String: UInt64]] = [:]
    /// Client -> character -> latest sequence it was told of.
    private var told: [String: [String: UInt64]] = [:]
    /// Client -> latest sequence of a notification that named no character, and so meant all.
    private var toldOfAll: [String: UInt64] = [:]
    /// Character -> latest sequence that was answered 202.
    private var latest: [String: UInt64] = [:]
    /// Event -> its sequence, and back.
    private(set) var sequences: [String: UInt64] = [:]
    private var events: [UInt64: String] = [:]
    /// The client's cursor never goes back.
    private var cursors: [String: UInt64] = [:]
    /// What turned out to be untrue.
    private(set) var violations: [String] = []
    /// Changes and catalogs answered, and notifications received.
    private(set) var (accepted, heard) = (0, 0)

    mutating func require(_ holds: Bool, _ text: @autoclosure () -> String) {
        if !holds { violations.append(text()) }
    }

    // MARK: Changes

    /// `event` about `key` is in the log at `sequence`: an answer said so.
    mutating func accepted(_ event: String, key: String, at sequence: UInt64) {
        accepted += 1
        if let earlier = sequences[event] {
            require(earlier == sequence, "\(event) moved from \(earlier) to \(sequence)")
        }
        if let other = events[sequence] {
            require(other == event, "\(sequence) was given to \(other) and to \(event)")
        }
        sequences[event] = sequence
        events[sequence] = event
        if !key.isEmpty { latest[key] = max(latest[key] ?? 0, sequence) }
    }

    /// The highest sequence that any answer named.
    var head: UInt64 { events.keys.max() ?? 0 }

    // MARK: Clients

    /// `client` holds these characters from now on and built them at `sequence`; of those it held
    /// before it keeps what it owes.
    mutating func registered(_ client: String, _ characters: [String], at sequence: UInt64) {
        let before = holdings[client] ?? [:]
        holdings[client] = Dictionary(
            uniqueKeysWithValues: characters.map { ($0, before[$0] ?? sequence) })
    }

    /// `client` may or may not hold these: nothing is owed to it for them.
    mutating func unsure(_ client: String, of characters: [String]) {
        for character in characters { holdings[client]?[character] = nil }
    }

    /// The characters `client` is known to hold.
    func characters(of client: String) -> [String] {
        (holdings[client] ?? [:]).keys.sorted()
    }

    /// `client` received a notification.
    mutating func told(_ client: String, _ notification: ReloadNotification, mayName: Set<String>) {
        heard += 1
        let sequence = notification.sequence
        if notification.all { toldOfAll[client] = max(toldOfAll[client] ?? 0, sequence) }
        for entry in notification.reload {
            guard let character = entry.parameters.first?.value else {
                toldOfAll[client] = max(toldOfAll[client] ?? 0, sequence)
                continue
            }
            require(mayName.contains(character), "\(client) was told of \(character), not its own")
            let before = told[client]?[character] ?? 0
            told[client, default: [:]][character] = max(before, sequence)
        }
    }

    /// `client` was given a cursor that stands at `sequence`.
    mutating func moved(_ client: String, to sequence: UInt64) {
        let before = cursors[client] ?? 0
        require(before <= sequence, "\(client)'s cursor went from \(before) back to \(sequence)")
        cursors[client] = sequence
    }

    /// What is owed to `client`: characters that changed after it built them and of which it was
    /// not told since.
    func owed(to client: String) -> [String] {
        (holdings[client] ?? [:]).compactMap { character, builtAt in
            guard let change = latest[character], change > builtAt else { return nil }
            let heard = max(told[client]?[character] ?? 0, toldOfAll[client] ?? 0)
            return heard >= change ? nil : "\(character)@\(change) (told of \(heard))"
        }
    }
}
