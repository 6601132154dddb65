import WidgetModel

/// A model of the clients' content and of the notifications that reached them. It is built only
/// from the messages between clients and gateway, and shares no rule, key or level with the
/// gateway.
struct ExplainModel {
    /// An item of a client's content.
    enum Item: Hashable {
        /// A widget of a kind that shows a character.
        case character(kind: String, String)
        /// A widget that shows the client's account.
        case account
        /// The recommendation set.
        case set

        var kind: String {
            switch self {
            case .character(let kind, _): kind
            case .account: "status"
            case .set: "detail"
            }
        }
    }

    /// A posted change.
    struct Posted {
        let entity: String
        let id: String?
        let operation: String
        let account: String?

        func concerns(_ item: Item, of client: Client) -> Bool {
            switch item {
            case .character(let kind, let character):
                entity == (kind == "hourly" ? "Rumour" : "Character")
                    && (id == nil || id == character)
            case .account: entity == "Account" && (account == nil || account == client.account)
            case .set: entity == "Character" && operation != "update"
            }
        }
    }

    /// A notification received on a stream.
    struct Heard {
        let sequence: UInt64
        let all: Bool
        /// The stale kinds, and the characters that narrow them.
        let reload: [(kind: String, character: String?)]
        let recommendations: [String]
        /// Whether the notification reported changes from before the stream was opened.
        let isCatchUp: Bool

        init(_ claims: ReloadNotification, isCatchUp: Bool) {
            sequence = claims.sequence
            all = claims.all
            reload = claims.reload.map { ($0.kind, $0.parameters.first?.value) }
            recommendations = claims.recommendations
            self.isCatchUp = isCatchUp
        }

        func names(_ item: Item) -> Bool {
            switch item {
            case .character(let kind, let character):
                all
                    || reload.contains {
                        $0.kind == kind && ($0.character == nil || $0.character == character)
                    }
            case .account: all || reload.contains { $0.kind == "status" }
            case .set: all || recommendations.contains("detail")
            }
        }
    }

    struct Client {
        let name: String
        let token: String
        let account: String
        let items: [Item]
        let platform: String
        /// The push tokens, if it receives pushes: for timelines, and for the set.
        var pushTokens: [String: String] = [:]
        /// The latest change at the time of its registration.
        let since: UInt64
        /// The client's cursor.
        var cursor: String
        /// The sequence that it acknowledged or resumed from.
        var confirmed: UInt64 = 0
        /// The sequence up to which polls reported everything: for all kinds, under "", and for
        /// single kinds.
        var polled: [String: UInt64] = [:]
        /// The notifications received on its streams.
        var heard: [Heard] = []
        /// Whether a stream is open, and the sequence of its last id.
        var isFollowing = false
        var lastID: UInt64 = 0
        /// The latest change when a push was accepted, by push type.
        var pushed: [String: UInt64] = [:]
        var setConfirmed: UInt64
        /// The push types whose address is dead.
        var dead: Set<String> = []
    }

    var clients: [Client] = []
    /// The changes by sequence.
    var changes: [UInt64: Posted] = [:]

    /// The five outcomes, and the details that are known from outside.
    struct Tally: Equatable, CustomStringConvertible {
        var confirmed = 0
        var sent: [String: Int] = [:]
        var collapsed: [UInt64: Int] = [:]
        var withheld = 0
        var unreachable = 0

        var holders: Int {
            confirmed + sent.values.reduce(0, +) + collapsed.values.reduce(0, +) + withheld
                + unreachable
        }

        var description: String {
            "confirmed \(confirmed), sent \(sent), collapsed \(collapsed), withheld \(withheld), "
                + "unreachable \(unreachable)"
        }

        mutating func count(_ outcome: Outcome) {
            switch outcome {
            case .confirmed: confirmed += 1
            case .sent(let channel): sent[channel, default: 0] += 1
            case .collapsed(let into): collapsed[into, default: 0] += 1
            case .withheld: withheld += 1
            case .unreachable: unreachable += 1
            }
        }
    }

    enum Outcome: Hashable {
        case confirmed
        case sent(String)
        case collapsed(UInt64)
        case withheld
        case unreachable
    }

    /// Returns the outcomes of a change for all clients that it affects.
    func tally(of sequence: UInt64) -> Tally {
        var tally = Tally()
        guard let change = changes[sequence] else { return tally }
        for client in clients where client.since < sequence {
            for item in client.items where change.concerns(item, of: client) {
                tally.count(outcome(of: sequence, item, client))
            }
        }
        return tally
    }

    /// Returns the outcome of a change for one item of a client.
    func outcome(of sequence: UInt64, _ item: Item, _ client: Client) -> Outcome {
        let confirmed = item == .set ? client.setConfirmed : client.confirmed
        if confirmed >= sequence { return .confirmed }
        let told = client.heard.filter { $0.sequence >= sequence && $0.names(item) }
            .min { $0.sequence < $1.sequence }
        if client.isFollowing {
            guard let told else { return .withheld }
            return told.sequence == sequence || told.isCatchUp || item.kind != "quick"
                ? .sent("stream") : .collapsed(told.sequence)
        }
        // After its stream ended, its last id is its position.
        if client.lastID >= sequence { return .sent("stream") }
        if max(client.polled[""] ?? 0, client.polled[item.kind] ?? 0) >= sequence {
            return .sent("poll")
        }
        let type = item == .set ? "background" : "widgets"
        guard client.pushTokens[type] != nil else { return .unreachable }
        if client.pushed[type] ?? 0 >= sequence { return .sent(type) }
        return client.dead.contains(type) ? .unreachable : .withheld
    }

    /// Returns the changes that affect an item of a client, oldest first.
    func changes(of item: Item, _ client: Client) -> [UInt64] {
        changes.filter { $0.key > client.since && $0.value.concerns(item, of: client) }
            .keys.sorted()
    }
}
