import WidgetModel

/// Valid documents, for tests to modify.
enum Documents {
    static let kind = "com.mygame.character-detail"

    static func widget(_ character: JSONValue) -> JSONValue {
        ["kind": .string(kind), "family": "systemSmall", "parameters": ["character": character]]
    }

    static func registration(_ character: String) -> JSONValue {
        ["platform": "iOS", "osVersion": "26.1", "widgets": [widget(.string(character))]]
    }

    static func event(
        _ id: String, data: JSONValue = ["entity": "CharacterDetail", "id": "panda"]
    ) -> JSONValue {
        [
            "specversion": "1.0", "type": "character.changed", "source": "hardening",
            "id": .string(id), "data": data,
        ]
    }

    static func change(_ character: String) -> JSONValue {
        ["entity": "CharacterDetail", "id": .string(character), "properties": ["avatar"]]
    }
}

enum Catalogs {
    static let bystander = """
        app: com.bystander
        entities: { Tick: { properties: [] } }
        widgets:
          - kind: clock
            configuration: static
            families: [systemSmall]
            collapse: 1ms
            dependsOn: [{ entity: Tick }]
        """

    static let game = """
        app: com.mygame
        selfDeclared: [theme]
        entities:
          CharacterDetail: { properties: [avatar, healthLevel, heroType, isAvailable] }
          GameStatus:      { properties: [turn] }
          Pair:            { properties: [] }
        intents:
          SelectCharacterIntent:
            title: Select Character
            parameters:
              - { name: character, title: Character, type: CharacterDetail }
          PairIntent:
            title: Two lists
            parameters:
              - { name: first, title: First, type: String }
              - { name: second, title: Second, type: String }
        widgets:
          - kind: com.mygame.character-detail
            configuration: appIntent
            intent: SelectCharacterIntent
            displayName: Character Details
            families: [systemSmall, systemMedium, systemLarge, accessoryRectangular]
            platforms: [iOS, watchOS]
            collapse: 200ms
            dependsOn:
              - entity: CharacterDetail
                match: { id: $character }
                properties: [avatar, healthLevel]
            recommendations:
              dependsOn:
                - entity: CharacterDetail
                  operations: [insert, delete]
                - entity: CharacterDetail
                  properties: [isAvailable, avatar]
          - kind: com.mygame.game-status
            configuration: static
            families: [systemSmall]
            dependsOn:
              - { entity: GameStatus, match: { account: $client.account } }
          - kind: com.mygame.pairs
            configuration: appIntent
            intent: PairIntent
            families: [systemSmall]
            dependsOn:
              - { entity: Pair, match: { first: $first, second: $second } }
        activities:
          - type: Battle
            attributes: [hero]
            content: { url: "https://backend.example/battle" }
            dependsOn:
              - { entity: CharacterDetail, match: { id: $hero }, properties: [healthLevel] }
        """
}
