import CatalogModel
import Testing
import WidgetModel

/// A catalog beside what the app's code declares.
@Suite struct DeclaredCatalogTests {
    private static let catalog = """
        app: com.mygame
        entities: { Hero: { properties: [health] }, Old: {} }
        intents:
          SelectHero:
            title: Choose
            parameters:
              - { name: hero, type: Hero, default: panda }
              - { name: levl, type: Int }
              - { name: mood, type: String }
        widgets:
          - kind: detail
            configuration: appIntent
            intent: SelectHero
            families: [systemSmall, systemLarge]
            dependsOn: [{ entity: Hero, match: { id: $hero } }]
          - { kind: staus, configuration: static, dependsOn: [{ entity: Old }] }
          - { kind: lamp, configuration: control, dependsOn: [{ entity: Old }] }
          - { kind: door, configuration: control, intent: SelectHero, dependsOn: [{ entity: Old }] }
        """
    private static let declared = """
        app: com.mygame
        entities: { Hero: {} }
        intents:
          SelectHero:
            parameters:
              - { name: hero, title: Hero, type: Hero }
              - { name: level, title: Level, type: Int }
              - { name: mood, title: Mood, type: AppEnum }
        widgets:
          - kind: detail
            configuration: appIntent
            intent: SelectHero
            families: [systemSmall, systemMedium]
          - { kind: status, configuration: static, families: [systemSmall] }
          - { kind: door, configuration: control }
        """

    private func read(_ yaml: String) throws -> Catalog {
        try Catalog(JSONValue(yaml: yaml), app: nil, limits: Limits())
    }

    @Test func everyDifferenceHasItsPlaceAndTheNearestName() throws {
        let faults = try read(Self.catalog).differences(from: read(Self.declared))
        let expected: [String] = [
            "widgets[0].families: lack `systemMedium`, which the app declares",
            "widgets[0].families: have `systemLarge`, which the app does not declare",
            "intents.SelectHero.parameters: lack `level`, which the app declares"
                + "; did you mean `levl`?",
            "intents.SelectHero.parameters: have `levl`, which the app does not declare"
                + "; did you mean `level`?",
            "intents.SelectHero.parameters[2].type: is String, but the app declares AppEnum",
            "widgets[3].intent: is stated, but the app declares none",
            "widgets: lack `status`, which the app declares; did you mean `staus`?",
            "widgets: have `staus`, which the app does not declare; did you mean `status`?",
        ]
        #expect(faults.list.map(\.description) == expected)
    }

    private static let source: JSONValue = ["url": "https://backend/battle"]
    private static let battle: JSONValue = [
        "type": "Battle", "attributes": ["hero"], "dependsOn": [["entity": "Hero"]],
        "content": source,
    ]

    private func with(_ yaml: String, _ activities: [JSONValue]) throws -> JSONValue {
        try JSONValue(yaml: yaml).merging(patch: ["activities": .array(activities)])
    }

    @Test func typesOfActivitiesAreComparedWhereTheCodeDeclaresSome() throws {
        let catalog = try Catalog(
            with(Self.catalog, [Self.battle]), app: nil, limits: Limits())
        let own = try read(Self.catalog)
        let declared = try Catalog(
            with(Self.declared, [["type": "Batle", "content": Self.source]]), app: nil,
            limits: Limits())
        let before = try own.differences(from: read(Self.declared)).count
        #expect(try catalog.differences(from: read(Self.declared)).count == before)
        #expect(
            catalog.differences(from: declared).list.dropFirst(before).map(\.description) == [
                "activities: lack `Batle`, which the app declares; did you mean `Battle`?",
                "activities: have `Battle`, which the app does not declare; did you mean `Batle`?",
            ])
    }

    @Test func writingKeepsTheRulesAndTheSourceOfAnActivity() throws {
        let old: JSONValue = ["type": "Old", "content": Self.source]
        let existing = try with(Self.catalog, [Self.battle, old])
        let declared = try with(Self.declared, [["type": "Race"], ["type": "Battle"]])
        let written = Catalog.document(existing, declaring: declared).objectValue
        #expect(written?["activities"]?.arrayValue?.count == 2)
        #expect(written?["activities"]?.arrayValue?[0] == ["type": "Race"])
        let battle = try #require(written?["activities"]?.arrayValue?[1].objectValue)
        #expect(battle["dependsOn"] == [["entity": "Hero"]] && battle["content"] == Self.source)
        let kept = try Catalog.document(existing, declaring: JSONValue(yaml: Self.declared))
        #expect(kept.objectValue?["activities"] == existing.objectValue?["activities"])
    }

    @Test func writingTakesTheCodesPartAndKeepsTheRest() throws {
        let document = try Catalog.document(
            JSONValue(yaml: Self.catalog), declaring: JSONValue(yaml: Self.declared))
        // JSON is YAML.
        let written = try read(document.indented())
        #expect(try written.differences(from: read(Self.declared)).isEmpty)
        #expect(written.widgets.map(\.kind) == ["detail", "status", "door", "lamp"])
        let detail = try #require(written.widget(kind: "detail"))
        #expect(try detail.dependsOn == read(Self.catalog).widget(kind: "detail")?.dependsOn)
        #expect(written.entities["Hero"]?.properties == ["health"])
        #expect(written.intents["SelectHero"]?.title == "Choose")
        #expect(written.intents["SelectHero"]?.parameters[0].defaultValue == .single("panda"))
    }
}
