import Foundation
import Synchronization
import Testing
import WidgetModel

@testable import TimelineClient

/// The characters that the game's server knows. A character that is not available is not suggested.
private let allCharacters = Mutex([
    CharacterDetail(id: "Power Panda", avatar: "🐼", isAvailable: true),
    CharacterDetail(id: "Unipony", avatar: "🦄", isAvailable: true),
    CharacterDetail(id: "Spouty", avatar: "🐳", isAvailable: true),
])

private struct CharacterDetail: AppEntity {
    let id: String
    let avatar: String
    var isAvailable: Bool

    static let typeDisplayRepresentation: TypeDisplayRepresentation = "Character"
    static let defaultQuery = CharacterQuery()

    var displayRepresentation: DisplayRepresentation { "\(avatar) \(id)" }
}

private struct CharacterQuery: EntityQuery {
    func entities(for identifiers: [String]) async throws -> [CharacterDetail] {
        allCharacters.withLock { $0.filter { identifiers.contains($0.id) } }
    }

    func suggestedEntities() async throws -> [CharacterDetail] {
        allCharacters.withLock { $0.filter(\.isAvailable) }
    }

    func defaultResult() async -> CharacterDetail? {
        try? await suggestedEntities().first
    }
}

private enum Mood: String, AppEnum {
    case calm, angry

    static let typeDisplayRepresentation: TypeDisplayRepresentation = "Mood"
    static let caseDisplayRepresentations: [Mood: DisplayRepresentation] = [
        .calm: "Calm", .angry: DisplayRepresentation(title: "Angry", subtitle: "and loud"),
    ]
}

private struct SelectCharacter: WidgetConfigurationIntent {
    static let title: LocalizedStringResource = "Select Character"
    static let description: IntentDescription? = "Selects the character to display."

    @Parameter(title: "Character") var character: CharacterDetail
    @Parameter(title: "Headline", description: "Above it", default: "My hero") var headline: String
    @Parameter(title: "Mood", default: .calm) var mood: Mood
    @Parameter(title: "Level", default: 7) var level: Int
    @Parameter(title: "Health", default: 0.5) var health: Double
    @Parameter(title: "Large", default: false) var isLarge: Bool
    @Parameter(title: "Since") var since: Date?
    @Parameter(title: "Friends", default: []) var friends: [CharacterDetail]

    init() {}

    init(character: CharacterDetail) { self.character = character }
}

/// A rival in a game, found by its name only, and without a default.
private struct Rival: AppEntity {
    let id: Int
    static let typeDisplayRepresentation: TypeDisplayRepresentation = "Rival"
    static let defaultQuery = RivalQuery()
    var displayRepresentation: DisplayRepresentation { "Rival \(id)" }
}

private struct RivalQuery: EntityStringQuery {
    func entities(for identifiers: [Int]) async throws -> [Rival] { identifiers.map(Rival.init) }
    func entities(matching string: String) async throws -> [Rival] {
        [Rival(id: string.utf8.count)]
    }
}

/// A team. Teams are few, so all of them can be listed.
private struct Team: AppEntity {
    let id: UUID
    static let typeDisplayRepresentation: TypeDisplayRepresentation = "Team"
    static let defaultQuery = TeamQuery()
    var displayRepresentation: DisplayRepresentation { "Team" }
}

private struct TeamQuery: EnumerableEntityQuery {
    static let ids = [UUID(), UUID(), UUID()]
    func allEntities() async throws -> [Team] { Self.ids.map(Team.init) }
}

private struct SelectRival: WidgetConfigurationIntent {
    static let title: LocalizedStringResource = "Select Rival"
    @Parameter(title: "Rival") var rival: Rival
    @Parameter(title: "Ally") var ally: Rival?
    @Parameter(title: "Days") var days: Int
}

private struct DetailEntry: TimelineEntry {
    var date = Date(timeIntervalSince1970: 0)
    var text: String
}

private struct DetailProvider<Intent: WidgetConfigurationIntent>: AppIntentTimelineProvider {
    let show: @Sendable (Intent) -> String
    var recommended: [Intent] = []

    func placeholder(in context: Context) -> DetailEntry { DetailEntry(text: "…") }

    func snapshot(for configuration: Intent, in context: Context) async -> DetailEntry {
        DetailEntry(text: context.isPreview ? "preview" : show(configuration))
    }

    func timeline(for configuration: Intent, in context: Context) async -> Timeline<DetailEntry> {
        Timeline(entries: [DetailEntry(text: show(configuration))], policy: .never)
    }

    func recommendations() -> [AppIntentRecommendation<Intent>] {
        recommended.map { AppIntentRecommendation(intent: $0, description: "one") }
    }
}

private struct CharacterDetailWidget: Widget {
    var body: some WidgetConfiguration {
        AppIntentConfiguration(
            kind: "com.mygame.character-detail", intent: SelectCharacter.self,
            provider: DetailProvider { "\($0.headline): \($0.character.avatar)" }
        ) { entry in
            Text(entry.text)
        }
        .configurationDisplayName("Character Details")
        .description("Displays a character's health and other details")
        .supportedFamilies([.systemSmall, .systemMedium, .systemLarge])
    }
}

/// The article "Making a configurable widget", with one suite for each of its headings.
@Suite("Making a configurable widget", .serialized) struct MakingAConfigurableWidgetTests {
    private func runtime() throws -> WidgetRuntime {
        try WidgetRuntime([CharacterDetailWidget().body])
    }

    private func shown(_ values: [String: ParameterValue]) async throws -> String {
        let info = WidgetInfo(
            kind: "com.mygame.character-detail", family: .systemSmall, configuration: values)
        let timeline = try await runtime().timeline(of: info)
        return try #require(timeline.entries.first as? DetailEntry).text
    }

    @Suite("Add a custom app intent to your project") struct Intent {
        @Test func parametersAreAskedForInTheOrderOfTheirDeclaration() {
            let parameters = SelectCharacter.parameterDeclarations
            #expect(
                parameters.map(\.name) == [
                    "character", "headline", "mood", "level", "health", "isLarge", "since",
                    "friends",
                ])
            #expect(parameters.map(\.title.text).prefix(2) == ["Character", "Headline"])
            #expect(parameters[1].description == "Above it")
            #expect(
                parameters.map(\.typeName.text) == [
                    "Character", "Text", "Mood", "Whole number", "Number", "Yes or no", "Date",
                    "List of Character",
                ])
            #expect(parameters.filter(\.isOptional).map(\.name) == ["since"])
        }

        @Test func everyTypeIsStoredAndReadBack() async throws {
            let panda = try #require(await CharacterDetail.defaultValue())
            let intent = SelectCharacter(character: panda)
            #expect(
                intent.parameters == [
                    "character": .single("Power Panda"), "headline": .single("My hero"),
                    "mood": .single("calm"), "level": .single("7"), "health": .single("0.5"),
                    "isLarge": .single("false"), "since": .unset, "friends": .list([]),
                ])
            let values: [String: ParameterValue] = [
                "character": .single("Unipony"), "headline": .single("A \u{1F984}"),
                "mood": .single("angry"), "level": .single("-3"), "health": .single("2"),
                "isLarge": .single("true"), "since": .single("2026-11-21T07:00:00.250Z"),
                "friends": .list(["Spouty", "Power Panda"]),
            ]
            let read = try await SelectCharacter.resolved(from: values)
            #expect(read.character.avatar == "🦄")
            #expect((read.headline, read.mood, read.level) == ("A \u{1F984}", .angry, -3))
            #expect((read.health, read.isLarge) == (2, true))
            #expect(read.since == Date(timeIntervalSince1970: 1_795_244_400.25))
            #expect(read.friends.map(\.avatar) == ["🐳", "🐼"])
            #expect(read.parameters == values)
        }

        @Test func copiesOfAnIntentAreValuesOfTheirOwn() async throws {
            let panda = try #require(await CharacterDetail.defaultValue())
            let first = SelectCharacter(character: panda)
            var second = first
            second.level = 8
            #expect((first.level, second.level) == (7, 8))
        }

        /// The error names every parameter that has no value from anywhere.
        @Test func aMissingDefaultIsAnErrorOfTheDeclaration() throws {
            let error = #expect(throws: WidgetDeclarationError.self) {
                try WidgetRuntime([
                    AppIntentConfiguration(
                        kind: "rival", intent: SelectRival.self,
                        provider: DetailProvider { _ in "" }
                    )
                ])
            }
            let faults = try #require(error).faults
            #expect(faults.count == 2)
            #expect(faults[0].contains("`rival` of SelectRival"))
            #expect(faults[1].contains("`days` of SelectRival"))
        }

        @Test func twoWidgetsOfOneKindAreAnError() {
            #expect(throws: WidgetDeclarationError.self) {
                try WidgetRuntime([CharacterDetailWidget().body, CharacterDetailWidget().body])
            }
            #expect(throws: WidgetDeclarationError.self) {
                try WidgetRuntime([CharacterDetailWidget().body.supportedFamilies([])])
            }
        }
    }

    @Suite("Implement a query to provide dynamic values", .serialized) struct Query {
        private func parameter(_ name: String) throws -> IntentParameterDeclaration {
            try #require(SelectCharacter.parameterDeclarations.first { $0.name == name })
        }

        @Test func peopleChooseFromWhatTheQuerySuggests() async throws {
            let options = try #require(try await parameter("character").options())
            #expect(options.map(\.value).first == .single("Power Panda"))
            #expect(options.map(\.displayRepresentation.title.text).first == "🐼 Power Panda")
            let found = try #require(try await parameter("character").options(matching: "PONY"))
            #expect(found.map(\.value) == [.single("Unipony")])
        }

        @Test func enumerationsOfferTheirCasesAndTextsAnything() async throws {
            let moods = try #require(try await parameter("mood").options())
            #expect(moods.map(\.value) == [.single("calm"), .single("angry")])
            let loud = try #require(try await parameter("mood").options(matching: "loud"))
            #expect(loud.map(\.value) == [.single("angry")])
            #expect(try await parameter("isLarge").options()?.count == 2)
            #expect(try await parameter("headline").options() == nil)
        }

        @Test func refinementsSearchAndList() async throws {
            let rivals = SelectRival.parameterDeclarations[0]
            #expect(try await rivals.options()?.isEmpty == true)
            #expect(try await rivals.options(matching: "abc")?.map(\.value) == [.single("3")])
            #expect(try await Team.options(matching: nil)?.count == 3)
            let id = TeamQuery.ids[1]
            #expect(try await Team.resolved(from: .single(id.uuidString)).id == id)
        }

        @Test func theQuerysDefaultStandsInForAChoice() async throws {
            #expect(try await parameter("character").defaultValue() == .single("Power Panda"))
            #expect(try await parameter("headline").defaultValue() == .single("My hero"))
            #expect(try await parameter("since").defaultValue() == .unset)
            let intent = try await SelectCharacter.resolved(from: [:])
            #expect(intent.character.id == "Power Panda")
            #expect(
                try await SelectCharacter.resolved(from: ["character": .unset]).character.id
                    == "Power Panda")
        }

        @Test func anEntityThatIsNoLongerSuggestedStillResolves() async throws {
            func setAvailable(_ isAvailable: Bool) {
                allCharacters.withLock { $0[2].isAvailable = isAvailable }
            }
            setAvailable(false)
            defer { setAvailable(true) }
            let options = try #require(try await parameter("character").options())
            #expect(!options.map(\.value).contains(.single("Spouty")))
            let intent = try await SelectCharacter.resolved(from: ["character": .single("Spouty")])
            #expect(intent.character.avatar == "🐳")
        }

        /// Showing another entity in its place would present it as the person's choice.
        @Test func anEntityThatIsGoneIsAnErrorWithoutItsName() async throws {
            let error = await #expect(throws: IntentError.self) {
                try await SelectCharacter.resolved(from: ["character": .single("Secret Name")])
            }
            #expect(try #require(error).parameter == "character")
            #expect(!"\(try #require(error))".contains("Secret"))
            let friends = try await SelectCharacter.resolved(
                from: ["friends": .list(["Secret Name", "Spouty"])]
            ).friends
            #expect(friends.map(\.id) == ["Spouty"])
        }

        @Test(arguments: [
            ("level", "1.5"), ("level", ""), ("health", "nan"), ("health", "inf"),
            ("isLarge", "yes"), ("mood", "Calm"), ("since", "yesterday"),
        ]) func whatIsStoredInAnotherWayIsAnError(name: String, text: String) async throws {
            let error = await #expect(throws: IntentError.self) {
                try await SelectCharacter.resolved(from: [name: .single(text)])
            }
            #expect(try #require(error).parameter == name)
            await #expect(throws: IntentError.self) {
                try await SelectCharacter.resolved(from: [name: .list([text])])
            }
        }
    }

    @Suite("Handle customized values in your widget", .serialized) struct Handle {
        private let tests = MakingAConfigurableWidgetTests()

        @Test func theConfigurationNamesItselfAndItsFamilies() throws {
            let widget = try #require(try tests.runtime().gallery.first)
            #expect(widget.kind == "com.mygame.character-detail")
            #expect(widget.displayName == "Character Details")
            #expect(widget.description?.text.hasPrefix("Displays a character") == true)
            #expect(
                widget.traits.supports(.systemLarge) && !widget.traits.supports(.accessoryInline))
            #expect(widget.parameters.count == 8)
        }

        @Test func theProviderGetsWhatThePersonChose() async throws {
            #expect(try await tests.shown(["character": .single("Unipony")]) == "My hero: 🦄")
            #expect(
                try await tests.shown([
                    "character": .single("Spouty"), "headline": .single("Whale"),
                ]) == "Whale: 🐳")
            #expect(try await tests.shown([:]) == "My hero: 🐼")
        }

        @Test func theContentShowsTheEntry() async throws {
            let info = WidgetInfo(
                kind: "com.mygame.character-detail", family: .systemSmall,
                configuration: ["character": .single("Unipony")])
            let runtime = try tests.runtime()
            let environment = try WidgetContextRules().environment(
                of: info, with: runtime.gallery[0].traits, at: .homeScreen, on: WidgetDevice(.iOS))
            let entry = try #require(try await runtime.timeline(of: info).entries.first)
            let node = try runtime.draw(entry, of: info, in: environment)
            #expect(node == WidgetNode(.text("My hero: 🦄")))
            #expect(throws: WidgetFailure.self) {
                try runtime.draw(
                    CharacterEntry(date: .now, name: "", build: 0), of: info, in: environment)
            }
        }

        @Test func snapshotsKnowWhetherTheyAreForTheGallery() async throws {
            let info = WidgetInfo(kind: "com.mygame.character-detail", family: .systemSmall)
            let preview = try await tests.runtime().snapshot(of: info, isPreview: true)
            #expect((preview as? DetailEntry)?.text == "preview")
            let real = try await tests.runtime().snapshot(of: info, isPreview: false)
            #expect((real as? DetailEntry)?.text == "My hero: 🐼")
        }
    }

    @Suite("Access customized values in your app") struct Access {
        @Test func aPlacedWidgetTellsItsIntent() async throws {
            let panda = try #require(await CharacterDetail.defaultValue())
            let info = WidgetInfo(
                kind: "k", family: .systemSmall, intent: SelectCharacter(character: panda))
            let intent = try #require(
                await info.widgetConfigurationIntent(of: SelectCharacter.self))
            #expect(intent.character.id == "Power Panda")
            #expect(await info.widgetConfigurationIntent(of: SelectRival.self) == nil)
        }

        /// The app is opened with the configuration intent of the tapped widget.
        @Test func aTappedWidgetBringsItsIntent() async throws {
            let panda = try #require(await CharacterDetail.defaultValue())
            let activity = WidgetActivity(
                widget: WidgetInfo(
                    kind: "k", family: .systemSmall, intent: SelectCharacter(character: panda)),
                url: nil)
            let intent = try #require(
                await activity.widgetConfigurationIntent(of: SelectCharacter.self))
            #expect(intent.character.id == "Power Panda")
            #expect(await activity.widgetConfigurationIntent(of: SelectRival.self) == nil)
        }

        /// A choice that is gone since then has no intent, and no other takes its place.
        @Test func aChoiceThatIsGoneHasNoIntent() async {
            let info = WidgetInfo(
                kind: "k", family: .systemSmall, configuration: ["character": .single("Nobody")])
            #expect(await info.widgetConfigurationIntent(of: SelectCharacter.self) == nil)
        }
    }

    @Suite("Offer configurable widgets and complications on Apple Watch") struct Watch {
        @Test func recommendationsAreTheIntentsAsTheyAreStored() async throws {
            let panda = try #require(await CharacterDetail.defaultValue())
            let runtime = try WidgetRuntime([
                AppIntentConfiguration(
                    kind: "watch", intent: SelectCharacter.self,
                    provider: DetailProvider(
                        show: { _ in "" }, recommended: [SelectCharacter(character: panda)]))
            ])
            let items = try #require(try await runtime.recommendations(ofKind: "watch"))
            #expect(items.map { $0.parameters["character"] } == [.single("Power Panda")])
            #expect(items.map(\.description) == ["one"])
        }

        @Test func anEmptyArrayIsASetToo() async throws {
            let runtime = try WidgetRuntime([CharacterDetailWidget().body])
            let kind = try #require(runtime.recommendedKinds.first)
            #expect(try await runtime.recommendations(ofKind: kind) == [])
        }
    }
}
