import GatewayTestSupport
import Testing

@testable import CatalogModel
@testable import WidgetModel

/// Returns the faults for which a document is refused; none if it is read.
func faultsFound(_ read: () throws -> Void) -> [Fault] {
    do {
        try read()
    } catch let faults as Faults {
        return faults.list
    } catch {
        Issue.record(error)
    }
    return []
}

@Suite struct CatalogTests {
    static func read(
        _ value: JSONValue, app: String? = CharacterGame.app, limits: Limits = Limits()
    ) throws(Faults) -> Catalog {
        try Catalog(value, app: app, limits: limits)
    }

    /// Returns the faults of the sample with `text` in place of `original`.
    static func faults(_ original: String, _ text: String) throws -> [String] {
        let pieces = CharacterGame.catalogYAML.split(
            separator: original, omittingEmptySubsequences: false)
        try #require(pieces.count > 1, "\(original) is not in the sample")
        let changed = pieces[0] + text + pieces[1...].joined(separator: original)
        return faultsFound { _ = try read(JSONValue(yaml: String(changed))) }.map(\.description)
    }

    @Test func `the sample is read as written`() throws {
        let catalog = try CharacterGame.catalog()
        #expect(catalog.app == CharacterGame.app && catalog.warnings.isEmpty)
        #expect(catalog.selfDeclared == ["theme"])
        let detail = try #require(catalog.widget(kind: CharacterGame.detail))
        #expect(detail.collapseMilliseconds == 200 && detail.configuration == .appIntent)
        #expect(
            detail.dependsOn[0].match == [.init(attribute: "id", binding: .parameter("character"))])
        #expect(detail.dependsOn[0].operations == Set(Change.Operation.allCases))
        #expect(detail.recommendations?.map(\.operations.count) == [2, 3])
        #expect(catalog.intent(of: detail)?.parameter("character")?.type.name == "CharacterDetail")
        let status = try #require(catalog.widget(kind: CharacterGame.status))
        #expect(status.dependsOn[0].match[0].binding == .clientAttribute("account"))
        #expect(status.recommendations == nil)
    }

    @Test func `YAML and JSON say the same`() throws {
        let json = try JSONValue(yaml: CharacterGame.catalogYAML)
        let again = try Catalog(
            contentType: "application/json", body: json.serialized, app: CharacterGame.app,
            limits: Limits())
        let yaml = try Catalog(
            contentType: "Application/YAML; charset=utf-8",
            body: Array(CharacterGame.catalogYAML.utf8), app: CharacterGame.app, limits: Limits())
        #expect(yaml == again)
    }

    @Test(arguments: [
        ("app: com.mygame", "app: com.other", "app: "),
        (
            "- entity: CharacterDetail\n", "- entity: CharacterDetial\n",
            "widgets[0].dependsOn[0].entity: is not a declared entity; did you mean `CharacterDetail`?"
        ),
        (
            "id: $character", "id: $charakter",
            "widgets[0].dependsOn[0].match.id: binds to a parameter that the kind, or activity, "
                + "does not have; did you mean `$character`?"
        ),
        ("id: $character", "id: $", "widgets[0].dependsOn[0].match.id: "),
        ("id: $character", "id: $client.", "widgets[0].dependsOn[0].match.id: "),
        ("id: $character", "id: [a]", "widgets[0].dependsOn[0].match.id: "),
        ("id: $character", "a: 1, b: 2, c: 3, d: 4, e: 5", "widgets[0].dependsOn[0].match: has 5"),
        (
            "[avatar, healthLevel]\n", "[avatar, healthLevl]\n",
            "widgets[0].dependsOn[0].properties[1]: is not a property of the entity; did you mean "
                + "`healthLevel`?"
        ),
        (
            "account: $client.account", "account: $account",
            "widgets[1].dependsOn[0].match.account: "
        ),
        (
            "operations: [insert, delete]", "operations: [upsert]",
            "widgets[0].recommendations.dependsOn[0].operations[0]: must be one of "
        ),
        (
            "intent: SelectCharacterIntent", "intent: SelectCharactersIntent",
            "widgets[0].intent: is not a declared intent; did you mean `SelectCharacterIntent`?"
        ),
        ("    intent: SelectCharacterIntent\n", "", "widgets[0].intent: is required"),
        (
            "configuration: static", "configuration: static\n    intent: SelectCharacterIntent",
            "widgets[1].intent: is not allowed"
        ),
        (
            "configuration: static", "configuration: dynamic",
            "widgets[1].configuration: must be one of"
        ),
        (
            "kind: com.mygame.game-status", "kind: com.mygame.character-detail",
            "widgets[1].kind: is declared twice"
        ),
        (
            "families: [systemSmall]", "families: [accessoryCorner]\n    platforms: [iOS]",
            "widgets[1].families[0]: accessoryCorner exists on watchOS only"
        ),
        (
            "type: CharacterDetail", "type: CharacterDetails",
            "intents.SelectCharacterIntent.parameters[0].type: is neither"
        ),
        ("name: character", "name: client.x", "intents.SelectCharacterIntent.parameters[0].name: "),
        ("collapse: 200ms", "collapse: soon", "widgets[0].collapse: "),
        ("collapse: 200ms", "collapse: 2h", "widgets[0].collapse: "),
        ("collapse: 200ms", "collapse: -1", "widgets[0].collapse: "),
        (
            "collapse: 200ms", "colapse: 200ms",
            "widgets[0].colapse: is unknown; did you mean `collapse`?"
        ),
        (
            "displayName: Character Details", "displayName: 7",
            "widgets[0].displayName: must be a string"
        ),
        (
            "families: [systemSmall]",
            "families: [systemSmall]\n    recommendations: { dependsOn: [] }",
            "widgets[1].recommendations: only kinds"
        ),
        ("selfDeclared: [theme]", "selfDeclared: theme", "selfDeclared: must be an array"),
        ("{ properties: [turn] }", "[turn]", "entities.GameStatus: must be an object"),
        ("app: com.mygame", #"app: "a\0""#, "app: must not contain control characters"),
        (
            "GameStatus: {", #""Game\0Status": {"#,
            "entities.Game\u{0}Status: the name must not contain control characters"
        ),
        (
            "kind: com.mygame.game-status", #"kind: "a\0""#,
            "widgets[1].kind: must not contain control characters"
        ),
        (
            "{ account: $client.account }", #"{ "a\0": x }"#,
            "widgets[1].dependsOn[0].match.a\u{0}: the name must not contain control characters"
        ),
    ])
    func `a fault is told with its place`(original: String, text: String, fault: String) throws {
        let faults = try Self.faults(original, text)
        #expect(faults.contains { $0.hasPrefix(fault) }, "\(faults)")
    }

    /// A kind without a configuration used to end the reading of that kind, so that its other
    /// faults were reported only after the next upload.
    @Test func `every fault is listed at once`() throws {
        let catalog: JSONValue = [
            "app": "a",
            "widgets": [
                ["kind": "", "dependsOn": [["entity": "E"], ["x": 1]]],
                ["kind": "k", "configuration": "static", "collapse": "x"],
            ],
        ]
        let places = faultsFound { _ = try Self.read(catalog, app: "a") }.map(\.place)
        #expect(
            places == [
                "widgets[0].kind", "widgets[0].configuration", "widgets[0].dependsOn[0].entity",
                "widgets[0].dependsOn[1].entity", "widgets[0].dependsOn[1].x",
                "widgets[1].collapse",
            ])
    }

    static let activity: JSONValue = [
        "type": "Battle", "attributes": ["hero", "level"],
        "dependsOn": [["entity": "Hero", "match": ["id": "$hero", "x": "$client.account"]]],
        "content": ["url": "https://backend/battle"],
    ]

    static func catalog(_ activities: JSONValue) -> JSONValue {
        [
            "app": "a", "entities": ["Hero": ["properties": ["health"]]],
            "widgets": [["kind": "k", "configuration": "static"]], "activities": activities,
        ]
    }

    @Test func `activities are read as written, and none are declared without them`() throws {
        let shared = Self.activity.merging(patch: ["type": "Race", "content": ["shared": true]])
        let catalog = try Self.read(Self.catalog([Self.activity, shared]), app: "a")
        let battle = try #require(catalog.activity(type: "Battle"))
        #expect(battle.attributes == ["hero", "level"])
        #expect(battle.content.url == "https://backend/battle" && !battle.content.isShared)
        #expect(
            battle.dependsOn[0].match == [
                .init(attribute: "id", binding: .parameter("hero")),
                .init(attribute: "x", binding: .clientAttribute("account")),
            ])
        #expect(battle.intent.parameter("level")?.defaultValue == .unset)
        #expect(catalog.activity(type: "Race")?.content.isShared == true)
        #expect(catalog.activity(type: "k") == nil && catalog.widget(kind: "Battle") == nil)
        #expect(try CharacterGame.catalog().activities.map(\.attributes) == [["hero", "name"]])
        #expect(try Self.read(Self.catalog(nil), app: "a").activities.isEmpty)
    }

    @Test(
        arguments: [
            (["type": nil], "type: is required"), (["type": "k"], "type: is also the kind"),
            (["attributes": "hero", "dependsOn": []], "attributes: must be an array"),
            (["attributes": ["hero", "hero"]], "attributes[1]: is declared twice"),
            (["attributes": ["hero", "client.x"]], "attributes[1]: must not start with `client.`"),
            (["attributes": ["hero", ""]], "attributes[1]: must not be empty"),
            (
                ["attributes": ["heros"]],
                "dependsOn[0].match.id: binds to a parameter that the kind, or activity, does not "
                    + "have; did you mean `$heros`?"
            ),
            (
                ["dependsOn": [["entity": "Heroe"]]],
                "dependsOn[0].entity: is not a declared entity; did you mean `Hero`?"
            ),
            (["content": nil], "content: is required"),
            (["content": "https://x"], "content: must be an object"),
            (["content": ["url": nil]], "content.url: is required"),
            (["content": ["url": "http://x"]], "content.url: must be an https URL"),
            (["content": ["shared": "yes"]], "content.shared: must be true or false"),
            (["content": ["share": true]], "content.share: is unknown; did you mean `shared`?"),
            (["collapse": "1s"], "collapse: is unknown"),
            (["recommendations": [:]], "recommendations: is unknown"),
        ] as [(JSONObject, String)])
    func `a fault of an activity is told with its place`(changes: JSONObject, fault: String) {
        let activity = Self.activity.merging(patch: .object(changes))
        let faults = faultsFound { _ = try Self.read(Self.catalog([activity]), app: "a") }
            .map(\.description)
        #expect(faults.count == 1 && faults[0].hasPrefix("activities[0].\(fault)"), "\(faults)")
    }

    @Test func `kinds and types have one name space, one limit and one count of keys`() throws {
        func places(_ activities: JSONValue, _ limits: Limits = Limits()) -> [String] {
            faultsFound {
                _ = try Self.read(Self.catalog(activities), app: "a", limits: limits)
            }.map(\.place)
        }
        let other = Self.activity.merging(patch: ["type": "Race"])
        #expect(places([Self.activity, other]) == [])
        #expect(places([Self.activity, Self.activity]) == ["activities[1].type"])
        var limits = Limits()
        limits.catalogKindsMax = 2
        #expect(places([Self.activity], limits) == [])
        #expect(places([Self.activity, other], limits) == ["activities"])
        limits = Limits()
        limits.changeKeysMax = 2
        #expect(places([Self.activity], limits) == [])
        limits.changeKeysMax = 1
        #expect(places([Self.activity], limits) == ["entities.Hero"])
    }

    @Test func `unknown families and platforms are warnings, for the set is open`() throws {
        let text = CharacterGame.catalogYAML.replacing(
            "families: [systemSmall]", with: "families: [systemHuge]\n    platforms: [carOS]")
        let catalog = try Self.read(JSONValue(yaml: text))
        #expect(
            catalog.warnings.map(\.place) == ["widgets[1].platforms[0]", "widgets[1].families[0]"])
    }

    @Test(
        arguments: [
            ("200ms", 200), ("2s", 2_000), ("0.5s", 500), ("0", 0), ("1500", 1_500),
            ("3600s", 3_600_000),
        ] as [(String, Int64)])
    func `durations are read`(text: String, milliseconds: Int64) throws {
        let yaml = CharacterGame.catalogYAML.replacing("200ms", with: text)
        let catalog = try Self.read(JSONValue(yaml: yaml))
        #expect(catalog.widgets[0].collapseMilliseconds == milliseconds)
    }

    @Test(arguments: [
        ("$character", DependencyRule.Binding.parameter("character")),
        ("$client.account", .clientAttribute("account")), ("$$", .literal("$")),
        ("$$client.x", .literal("$client.x")), ("a$b", .literal("a$b")),
        ("client.x", .literal("client.x")),
    ])
    func `bindings are read as written`(text: String, binding: DependencyRule.Binding) {
        #expect(DependencyRule.Binding(text) == binding)
    }

    @Test func `bounds on kinds, rules and size are told`() throws {
        var limits = Limits()
        limits.catalogKindsMax = 2
        limits.kindRulesMax = 1
        func widgets(_ count: Int, rules: Int) -> JSONValue {
            let rules = JSONValue.array(Array(repeating: ["entity": "E"], count: rules))
            return [
                "app": "a", "entities": ["E": [:]],
                "widgets": .array(
                    (0..<count).map {
                        ["kind": .string("k\($0)"), "configuration": "static", "dependsOn": rules]
                    }),
            ]
        }
        _ = try Self.read(widgets(2, rules: 1), app: "a", limits: limits)
        #expect(throws: Faults.self) {
            try Self.read(widgets(3, rules: 1), app: "a", limits: limits)
        }
        #expect(throws: Faults.self) {
            try Self.read(widgets(1, rules: 2), app: "a", limits: limits)
        }
        limits.catalogBytesMax = 10
        #expect(throws: DocumentRefusal.self) {
            try Catalog(
                contentType: "application/json", body: Array(repeating: 0x20, count: 11), app: "a",
                limits: limits)
        }
        for type in [nil, "text/plain"] {
            guard
                case .unsupportedMediaType = #expect(
                    throws: DocumentRefusal.self,
                    performing: {
                        try Catalog(contentType: type, body: [], app: "a", limits: Limits())
                    })
            else {
                Issue.record("\(type ?? "-") was read")
                continue
            }
        }
    }
}

@Suite struct YAMLTests {
    @Test(
        arguments: [
            ("a: 1", ["a": 1]), ("a: '1'", ["a": "1"]), ("a: 1.5", ["a": .number(1.5)]),
            ("a: ~", ["a": nil]),
            ("a: true", ["a": true]), ("a: False", ["a": false]), ("[x, y]", ["x", "y"]),
            ("a: &x [1]\nb: *x", ["a": [1], "b": [1]]),
            ("{\"a\": [null, \"é\"]}", ["a": [nil, "é"]]),
            ("a: 2026-11-21", ["a": "2026-11-21"]), ("a: !!str 1", ["a": "1"]),
            ("a: yes", ["a": "yes"]), ("a: Off", ["a": "Off"]), ("a: TRUE", ["a": true]),
            ("a: &x 1\nb: {c: *x, d: [*x]}", ["a": 1, "b": ["c": 1, "d": [1]]]),
            ("{a: [1] , b: {}}", ["a": [1], "b": [:]]), ("a: \"why? * [x]\"", ["a": "why? * [x]"]),
        ] as [(String, JSONValue)])
    func `plain values follow the core schema`(yaml: String, value: JSONValue) throws {
        #expect(try JSONValue(yaml: yaml) == value)
    }

    @Test(arguments: [
        "", "# only a comment", "a: [", "a: *missing", "a: &a [*a]", "a: 1\na: 2", "? [a]\n: 1",
        "a: b: c",
        "\t- x",
        "--- 1\n--- 2", "\u{0}",
    ])
    func `what is not one document of text keys is refused`(yaml: String) {
        #expect(throws: Faults.self) { try JSONValue(yaml: yaml) }
    }

    @Test func `aliases do not multiply without bound`() {
        var yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
        for level in 1...12 {
            let aliases = Array(repeating: "*a\(level - 1)", count: 10).joined(separator: ", ")
            yaml += "a\(level): &a\(level) [\(aliases)]\n"
        }
        #expect(throws: Faults.self) { try JSONValue(yaml: yaml) }
    }

    /// Composing used to compare names by value, which never ended for an alias of aliases of
    /// aliases.
    @Test(arguments: [
        "- ? *a40\n  : 1", "- *a40 : 1", "- {[*a40]: 1}", "- [ [ *a40 ] : 1 ]",
        "- ? - *a40\n  : 1", "- {? *a40 : 1}", "- {{a: *a40} : 1}",
    ])
    func `a name of aliases is refused before it is looked at`(last: String) {
        var yaml = "- &a0 [x, x]\n"
        for level in 1...40 { yaml += "- &a\(level) [*a\(level - 1), *a\(level - 1)]\n" }
        #expect(throws: Faults.self) { try JSONValue(yaml: yaml + last + "\n") }
    }

    @Test func `nesting is bounded`() {
        for depth in [65, 1_000, 20_000] {
            let yaml = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
            #expect(throws: Faults.self) { try JSONValue(yaml: yaml) }
        }
    }
}
