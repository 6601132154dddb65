import WidgetModel

/// What clients hold and what really reached them, kept from nothing but what was sent to them and
/// what they said: it shares no rule, key or level with the gateway.
struct ExplainModel {
    /// Something a client holds.
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

    /// A change, as it was posted.
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

    /// A notification that came on a stream.
    struct Heard {
        let sequence: UInt64
        let all: Bool
        /// Kinds that are stale, and the characters that narrow them.
        let reload: [(kind: String, character: String?)]
        let recommendations: [String]
        /// It told what was missed before the stream was opened.
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
        /// Its push tokens, if it is pushed to: for timelines, and for the set.
        var pushTokens: [String: String] = [:]
        /// The latest change when it registered.
        let since: UInt64
        /// Its cursor.
        var cursor: String
        /// It acknowledged, or resumed from, this.
        var confirmed: UInt64 = 0
        /// Polls told it of everything up to here: of all, and of single kinds.
        var polled: [String: UInt64] = [:]
        /// What came on its streams.
        var heard: [Heard] = []
        /// Whether a stream is open, and where the last id stands.
        var isFollowing = false
        var lastID: UInt64 = 0
        /// Changes up to here were there when a push was taken, by push type.
        var pushed: [String: UInt64] = [:]
        var setConfirmed: UInt64
        /// Push types whose address is dead.
        var dead: Set<String> = []
    }

    var clients: [Client] = []
    /// The changes by their sequences.
    var changes: [UInt64: Posted] = [:]

    /// The five, and what beside them is known from outside.
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

    /// What became of every holder of a change.
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

    /// What became of a change for something of a client.
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
        // What it holds after its stream ended is its last id.
        if client.lastID >= sequence { return .sent("stream") }
        if max(client.polled[""] ?? 0, client.polled[item.kind] ?? 0) >= sequence {
            return .sent("poll")
        }
        let type = item == .set ? "background" : "widgets"
        guard client.pushTokens[type] != nil else { return .unreachable }
        if client.pushed[type] ?? 0 >= sequence { return .sent(type) }
        return client.dead.contains(type) ? .unreachable : .withheld
    }

    /// The changes that concern something of a client, oldest first.
    func changes(of item: Item, _ client: Client) -> [UInt64] {
        changes.filter { $0.key > client.since && $0.value.concerns(item, of: client) }
            .keys.sorted()
    }
}
