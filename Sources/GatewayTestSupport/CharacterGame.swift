import WidgetModel

/// The sample everything is tried with: the character game of the quick start.
public enum CharacterGame {
    /// The app's bundle id.
    public static let app = "com.mygame"
    /// The configurable widget's kind.
    public static let detail = "com.mygame.character-detail"
    /// The static widget's kind.
    public static let status = "com.mygame.game-status"

    /// The catalog as a backend puts it.
    public static let catalogYAML = """
        app: com.mygame
        selfDeclared: [theme]
        entities:
          CharacterDetail: { properties: [avatar, healthLevel, heroType, isAvailable] }
          GameStatus:      { properties: [turn] }
        intents:
          SelectCharacterIntent:
            title: Select Character
            parameters:
              - { name: character, title: Character, type: CharacterDetail }
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
        """

    /// The catalog, read.
    public static func catalog() throws -> Catalog {
        try Catalog(JSONValue(yaml: catalogYAML), app: app, limits: Limits())
    }

    /// A widget that shows one character, or none chosen.
    public static func widget(_ character: String?) -> ConfiguredWidget {
        ConfiguredWidget(
            kind: detail, family: "systemSmall",
            parameters: ["character": character.map { .single($0) } ?? .unset])
    }

    /// A change to a character.
    public static func change(
        _ character: String?, _ properties: [String] = ["healthLevel"]
    ) -> Change {
        Change(entity: "CharacterDetail", id: character, properties: properties)
    }
}
