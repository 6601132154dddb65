/// What can become stale: a widget's timeline, a recommendation set, a kind's relevance, a control,
/// a Live Activity.
struct OracleItem: Sendable, Hashable, CustomStringConvertible {
    enum Sort: Sendable, Hashable { case timeline, set, relevance, control, activity }

    let sort: Sort
    let kind: String
    /// The character, lamp or account that it shows; ``every`` where all of its kind are meant. An
    /// activity has it as its id, too.
    let value: String

    static let every = "*"

    var description: String { "\(sort) \(kind) \(value)" }
}

/// A notification on any channel.
struct OracleNotice: Sendable, CustomStringConvertible {
    struct Name: Sendable, CustomStringConvertible {
        let sort: OracleItem.Sort
        let kind: String
        /// `nil` for every value.
        let value: String?

        func matches(_ item: OracleItem) -> Bool {
            sort == item.sort && kind == item.kind && (value ?? item.value) == item.value
        }

        var description: String { "\(sort) \(kind) \(value ?? OracleItem.every)" }
    }

    let all: Bool
    let names: [Name]
    /// The latest change that it tells.
    let sequence: UInt64

    func matches(_ item: OracleItem) -> Bool { all || names.contains { $0.matches(item) } }

    var description: String {
        all ? "everything" : names.map(\.description).joined(separator: ", ")
    }
}

/// The catalog of the app: five kinds, of which a few properties change, and a type of activities.
///
/// `detail` and `busy` show a character, `status` the client's account, `lamp` is a control, `boss`
/// has relevance only; `detail` has recommendations. A `Battle` shows a character.
struct OracleCatalog: Sendable {
    /// A catalog that differs in one place.
    enum Edit: Sendable, Hashable {
        /// Another display name of a kind.
        case rename(String)
        /// Another collapse window of a kind, in milliseconds.
        case window(String, Int64)
        /// Whether `detail` depends on moods as well.
        case moods(Bool)
        /// Whether `detail` depends on the health of characters only.
        case health(Bool)
    }

    /// A rule; another property makes it another rule.
    struct Rule: Sendable, Hashable {
        let sort: OracleItem.Sort
        let kind: String
        let entity: String
        /// What the id of the change is matched with; empty for nothing.
        let match: String
        var properties = ""
    }

    private(set) var windows: [String: Int64] = [:]
    private var names: [String: Int] = [:]
    private var hasMoods = false
    private var isOfHealth = false

    mutating func apply(_ edit: Edit) {
        switch edit {
        case .rename(let kind): names[kind, default: 0] += 1
        case .window(let kind, let milliseconds): windows[kind] = milliseconds
        case .moods(let hasMoods): self.hasMoods = hasMoods
        case .health(let isOfHealth): self.isOfHealth = isOfHealth
        }
    }

    func window(of kind: String) -> Int64 { windows[kind] ?? 0 }

    var collapses: Bool { windows.values.contains { $0 > 0 } }

    var rules: [Rule] {
        var rules = [
            Rule(
                sort: .timeline, kind: "detail", entity: "Character", match: "$character",
                properties: isOfHealth ? "health" : ""),
            Rule(sort: .set, kind: "detail", entity: "Offer", match: "$character"),
            Rule(sort: .timeline, kind: "busy", entity: "News", match: "$character"),
            Rule(sort: .timeline, kind: "status", entity: "Account", match: "$client.account"),
            Rule(sort: .control, kind: "lamp", entity: "Lamp", match: "$character"),
            Rule(sort: .relevance, kind: "boss", entity: "Boss", match: ""),
            Rule(sort: .activity, kind: "Battle", entity: "Fight", match: "$hero"),
        ]
        if hasMoods {
            rules.append(
                Rule(sort: .timeline, kind: "detail", entity: "Mood", match: "$character"))
        }
        return rules
    }

    var yaml: String {
        func list(_ kind: String, isSet: Bool = false) -> String {
            let rules = rules.filter { $0.kind == kind && ($0.sort == .set) == isSet }
            let texts = rules.map { rule -> String in
                var text = "entity: \(rule.entity)"
                if !rule.match.isEmpty { text += ", match: { id: \(rule.match) }" }
                if !rule.properties.isEmpty { text += ", properties: [\(rule.properties)]" }
                return "{ \(text) }"
            }
            return "[" + texts.joined(separator: ", ") + "]"
        }
        func head(_ kind: String) -> String {
            "displayName: \(kind) \(names[kind] ?? 0), collapse: \(window(of: kind)), "
                + "dependsOn: \(list(kind))"
        }
        return """
            app: \(StreamFixture.app)
            entities: { Character: { properties: [health] }, Offer: {}, News: {}, Account: {},
              Lamp: {}, Boss: {}, Mood: {}, Fight: {} }
            intents: { One: { parameters: [{ name: character, type: String }] } }
            widgets:
              - { kind: detail, configuration: appIntent, intent: One, families: [systemSmall],
                  recommendations: { dependsOn: \(list("detail", isSet: true)) },
                  \(head("detail")) }
              - { kind: busy, configuration: appIntent, intent: One, families: [systemSmall],
                  \(head("busy")) }
              - { kind: status, configuration: static, families: [systemSmall], \(head("status")) }
              - { kind: lamp, configuration: control, intent: One, \(head("lamp")) }
              - { kind: boss, configuration: relevance, families: [accessoryRectangular],
                  \(head("boss")) }
            activities:
              - { type: Battle, attributes: [hero], content: { url: "https://battle.example/" },
                  dependsOn: \(list("Battle")) }
            """
    }
}
