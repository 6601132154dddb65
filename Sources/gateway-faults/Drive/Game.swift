import GatewayTestSupport
import WidgetModel

/// The app of a campaign: its catalog, its clients' registrations and its changes.
enum Game {
    static let app = "com.mygame"
    static let characters = (0..<30).map { "hero-\($0)" }
    static let accounts = (0..<6).map { "account-\($0)" }

    /// The catalog; variants differ in a comment, or in a kind that no client placed.
    static func catalog(variant: Int = 0) -> String {
        let extra =
            variant % 2 == 0
            ? ""
            : "  - { kind: extra-\(variant), configuration: static, families: [systemSmall] }\n"
        return """
            # variant \(variant)
            app: \(app)
            entities:
              Character: { properties: [health] }
              GameStatus: { properties: [turn] }
              Pulse: { properties: [beat] }
            intents:
              One: { parameters: [{ name: character, type: Character }] }
              Many: { parameters: [{ name: character, type: "[Character]" }] }
            widgets:
              - kind: detail
                configuration: appIntent
                intent: One
                families: [systemSmall]
                dependsOn: [{ entity: Character, match: { id: $character } }]
              - kind: party
                configuration: appIntent
                intent: Many
                families: [systemSmall]
                collapse: 50ms
                dependsOn: [{ entity: Character, match: { id: $character } }]
              - kind: status
                configuration: static
                families: [systemSmall]
                dependsOn: [{ entity: GameStatus, match: { account: $client.account } }]
              - kind: pulse
                configuration: static
                families: [systemSmall]
                dependsOn: [{ entity: Pulse }]
            \(extra)
            """
    }

    /// The widgets of one client.
    struct Placement: Sendable, Equatable {
        /// Whether one widget shows all its characters, or each has a widget of its own.
        var isParty: Bool
        var characters: [String]
        var account: String

        /// One to four characters and an account.
        static func random(
            isParty: Bool, using generator: inout SplitMix64
        ) -> Placement {
            let count = 1 + generator.below(4)
            return Placement(
                isParty: isParty,
                characters: Array(Game.characters.shuffled(using: &generator).prefix(count)),
                account: generator.pick(Game.accounts))
        }

        /// The interests that follow from the catalog.
        var interests: Set<Interest> {
            var interests = Set(
                characters.map {
                    Interest(kind: isParty ? .party : .detail, subject: .character($0))
                })
            interests.insert(Interest(kind: .status, subject: .account(account)))
            interests.insert(Interest(kind: .pulse, subject: .pulse))
            return interests
        }

        /// The registration, as a backend puts it.
        var document: JSONValue {
            let values: [JSONValue] =
                isParty
                ? [.array(characters.map { .string($0) })] : characters.map { .string($0) }
            var widgets: [JSONValue] = values.map { value in
                [
                    "kind": isParty ? "party" : "detail", "family": "systemSmall", "count": 1,
                    "parameters": ["character": value],
                ]
            }
            for kind in ["status", "pulse"] {
                widgets.append(["kind": .string(kind), "family": "systemSmall", "count": 1])
            }
            return [
                "platform": "iOS", "osVersion": "26.1", "attributes": ["account": .string(account)],
                "widgets": .array(widgets),
            ]
        }
    }

    static func events(batch: Int, _ subjects: [Subject], run: String) -> [JSONValue] {
        subjects.enumerated().map { index, subject in
            let data: JSONValue =
                switch subject {
                case .character(let id): ["entity": "Character", "id": .string(id)]
                case .account(let id):
                    ["entity": "GameStatus", "attributes": ["account": .string(id)]]
                case .pulse: ["entity": "Pulse"]
                }
            return [
                "specversion": "1.0", "type": "test.changed", "source": .string(run),
                "id": .string("\(batch)-\(index)"), "data": data,
            ]
        }
    }

    /// A notification as the campaign's clients understand it.
    static func telling(_ notification: ReloadNotification, opened: Double) -> ReceivedNotification
    {
        var targets: [ReceivedNotification.Target] = notification.all ? [.all] : []
        for entry in notification.reload {
            guard let kind = WidgetKind(rawValue: entry.kind) else {
                targets.append(.foreign(entry.kind))
                continue
            }
            switch (kind, entry.parameters.first?.value) {
            case (.pulse, _): targets.append(.interest(Interest(kind: .pulse, subject: .pulse)))
            case (.detail, let id?), (.party, let id?):
                targets.append(.interest(Interest(kind: kind, subject: .character(id))))
            default: targets.append(.kind(kind))
            }
        }
        return ReceivedNotification(
            sequence: notification.sequence, targets: targets, opened: opened)
    }
}

extension Subject {
    /// Returns a character or, less often, an account.
    static func random(using generator: inout SplitMix64) -> Subject {
        generator.happens(80)
            ? .character(generator.pick(Game.characters))
            : .account(generator.pick(Game.accounts))
    }
}
