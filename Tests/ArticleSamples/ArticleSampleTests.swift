import Foundation
import Synchronization
import Testing

@testable import TimelineRuntime
@testable import WidgetViews

/// An intent with a parameter of each type.
private struct EveryType: WidgetConfigurationIntent {
    static let title: LocalizedStringResource = "Every type"
    static let description: IntentDescription? = "Has every type."

    @Parameter(title: "Character") var character: CharacterDetail
    @Parameter(title: "Headline", description: "Above it", default: "Hero") var headline: String
    @Parameter(title: "Number", default: .one) var number: L114
    @Parameter(title: "Level", default: 7) var level: Int
    @Parameter(title: "Health", default: 0.5) var health: Double
    @Parameter(title: "Large", default: false) var isLarge: Bool
    @Parameter(title: "Since") var since: Date?
    @Parameter(title: "Friends", default: []) var friends: [CharacterDetail]
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

private struct Undecided: WidgetConfigurationIntent {
    static let title: LocalizedStringResource = "Undecided"
    @Parameter(title: "Rival") var rival: Rival
    @Parameter(title: "Ally") var ally: Rival?
    @Parameter(title: "Days") var days: Int
}

private struct SelectFriend: WidgetConfigurationIntent {
    static let title: LocalizedStringResource = "Select Friend"
    @Parameter(title: "Friend") var friend: CharacterDetail?
    @Parameter(title: "Rival") var rival: CharacterDetail
}

private struct Greet: AppIntent {
    static let title: LocalizedStringResource = "Greet"
    @Parameter(title: "Friend") var friend: CharacterDetail?
    func perform() async throws -> some IntentResult { .result() }
}

/// A provider that shows its configuration as a text.
private struct TextProvider<Intent: WidgetConfigurationIntent>: AppIntentTimelineProvider {
    let show: @Sendable (Intent) -> String

    func placeholder(in context: Context) -> GameStatusEntry {
        GameStatusEntry(date: .distantPast, gameStatus: "")
    }

    func snapshot(for configuration: Intent, in context: Context) async -> GameStatusEntry {
        placeholder(in: context)
    }

    func timeline(
        for configuration: Intent, in context: Context
    ) async -> Timeline<GameStatusEntry> {
        Self.timeline(show(configuration))
    }

    func timeline(
        withoutEntityOf parameter: String, in context: Context
    ) -> Timeline<GameStatusEntry> {
        Self.timeline("\(parameter) is gone")
    }

    private static func timeline(_ text: String) -> Timeline<GameStatusEntry> {
        Timeline(
            entries: [GameStatusEntry(date: .distantPast, gameStatus: text)], policy: .never)
    }
}

/// A provider that calls its completion handlers as often as a test asks for.
private struct CallingProvider: TimelineProvider {
    let calls: Int

    func placeholder(in context: Context) -> GameStatusEntry {
        GameStatusEntry(date: .distantPast, gameStatus: "\(context.family)")
    }

    func getSnapshot(in context: Context, completion: @escaping (GameStatusEntry) -> Void) {}

    func getTimeline(
        in context: Context, completion: @escaping (Timeline<GameStatusEntry>) -> Void
    ) {
        for call in 0..<calls {
            var entry = placeholder(in: context)
            entry.date += Double(call)
            completion(Timeline(entries: [entry], policy: .never))
        }
    }
}

#Preview(
    "Unipony", as: .systemSmall,
    using: SelectCharacterIntent(character: CharacterDetail.allCharacters[1]),
    widget: { CharacterDetailWidget() }, timelineProvider: { CharacterDetailProvider() })

#Preview(
    "Game", as: .systemSmall, widget: { GameStatusWidget() },
    timelineProvider: { GameStatusProvider() })

/// The articles' samples at work: placed, built, drawn, tapped and previewed.
@Suite struct ArticleSampleTests {
    private let character = WidgetInfo(
        kind: "com.mygame.character-detail", family: .systemSmall,
        configuration: ["character": .single("Unipony")])
    private let status = WidgetInfo(kind: "com.mygame.game-status", family: .systemSmall)

    private func environment(
        _ family: WidgetFamily, _ mode: WidgetRenderingMode? = nil,
        at location: WidgetLocation = .homeScreen
    ) throws -> WidgetEnvironment {
        try WidgetContextRules().environment(
            of: WidgetInfo(kind: "k", family: family), with: WidgetTraits(), at: location,
            on: WidgetDevice(.iOS), state: WidgetDeviceState(renderingMode: mode))
    }

    /// Making a configurable widget: the gallery's texts, the parameters, and their options.
    @Test func theConfigurableWidgetIsDeclared() async throws {
        let widget = try WidgetDeclarations([CharacterDetailWidget().body]).gallery[0]
        #expect(widget.displayName == "Character Details")
        #expect(widget.description == "Displays a character's health and other details")
        #expect(widget.traits.supportedFamilies == [.systemSmall, .systemMedium, .systemLarge])
        #expect(widget.parameters.map(\.name) == ["character"])
        #expect(widget.parameters[0].type == .entity("CharacterDetail"))
        let options = try #require(try await widget.parameters[0].options())
        #expect(options.map(\.value.texts) == [["Power Panda"], ["Unipony"], ["Spouty"]])
        #expect(options[1].displayRepresentation.title.text == "🦄 Unipony")
        #expect(
            SelectCharacterIntent.intentDescription?.descriptionText
                == "Selects the character to display information for.")
        let titled = try #require(TitledIntent.parameterDeclarations.first)
        #expect(try await titled.defaultValue() == .single("A Default Title"))
        #expect(titled.type == .text)
    }

    @Test func theProviderGetsWhatThePersonChoseAndElseTheDefault() async throws {
        let runtime = try WidgetDeclarations([CharacterDetailWidget().body])
        for (values, avatar) in [(character.configuration, "🦄"), ([:], "🐼")] {
            let info = WidgetInfo(
                kind: character.kind, family: .systemSmall, configuration: values)
            let timeline = try await runtime.timeline(of: info)
            #expect(timeline.reloadDate == nil)
            let entry = try #require(timeline.entries.first)
            let node = try runtime.draw(entry, of: info, in: environment(.systemSmall))
            #expect(node == WidgetNode(.text(avatar)))
        }
        let preview = try await runtime.snapshot(of: character, isPreview: true)
        #expect((preview as? CharacterDetailEntry)?.detail.id == "Unipony")
        let items = try #require(try await runtime.recommendations(ofKind: character.kind))
        #expect(items.map(\.description) == ["🐼", "🦄", "🐳"])
    }

    @Test func everyTypeIsDeclaredStoredAndReadBack() async throws {
        let declared = EveryType.parameterDeclarations
        #expect(
            declared.map(\.name) == [
                "character", "headline", "number", "level", "health", "isLarge", "since",
                "friends",
            ])
        #expect(
            declared.map(\.type) == [
                .entity("CharacterDetail"), .text, .choice(["1", "2"]), .wholeNumber, .number,
                .flag, .date, .list(.entity("CharacterDetail")),
            ])
        #expect(declared.filter(\.isOptional).map(\.name) == ["since"])
        #expect(EveryType().since == nil, "it was never set")
        #expect(declared[1].title.text == "Headline" && declared[1].description == "Above it")
        #expect(EveryType.intentDescription?.descriptionText.text == "Has every type.")
        #expect(L108.intentDescription == nil)
        var intent = try await EveryType.resolved(from: ["character": .unset])
        #expect(
            intent.parameters == [
                "character": .single("Power Panda"), "headline": .single("Hero"),
                "number": .single("1"), "level": .single("7"), "health": .single("0.5"),
                "isLarge": .single("false"), "since": .unset, "friends": .list([]),
            ])
        let copy = intent
        intent.level = 8
        #expect(copy.level == 7 && intent.level == 8, "copies are values of their own")
        let values: [String: ParameterValue] = [
            "character": .single("Unipony"), "headline": .single("A \u{1F984}"),
            "number": .single("2"), "level": .single("-3"), "health": .single("2"),
            "isLarge": .single("true"), "since": .single("2026-11-21T07:00:00.250Z"),
            "friends": .list(["Spouty", "Power Panda"]),
        ]
        let read = try await EveryType.resolved(from: values)
        #expect(read.character.avatar == "🦄" && read.headline == "A \u{1F984}")
        #expect(read.number == .two && read.level == -3 && read.health == 2 && read.isLarge)
        #expect(read.since == Date(timeIntervalSince1970: 1_795_244_400.25))
        #expect(read.friends.map(\.avatar) == ["🐳", "🐼"])
        #expect(read.parameters == values)
    }

    @Test(arguments: [
        ("level", "1.5"), ("level", ""), ("health", "nan"), ("health", "inf"), ("isLarge", "yes"),
        ("number", "3"), ("since", "yesterday"),
    ])
    func whatIsStoredInAnotherWayIsAnError(name: String, text: String) async throws {
        for value in [ParameterValue.single(text), .list([text])] {
            let error = await #expect(throws: IntentError.self) {
                try await EveryType.resolved(from: [name: value])
            }
            #expect(error?.parameter == name)
        }
    }

    /// "Implement a query to provide dynamic values".
    @Test func queriesSuggestFindAndSearch() async throws {
        let hero = SelectCharacterIntent.parameterDeclarations[0]
        #expect(try await hero.defaultValue() == .single("Power Panda"))
        #expect(try await hero.options(matching: "PONY")?.map(\.value) == [.single("Unipony")])
        let every = EveryType.parameterDeclarations
        #expect(try await every[2].options()?.map(\.value) == [.single("1"), .single("2")])
        #expect(try await every[2].options(matching: "TWICE")?.map(\.value) == [.single("2")])
        #expect(try await every[5].options()?.count == 2)
        #expect(try await every[1].options() == nil)
        // What is not, or no longer, suggested is found all the same.
        let rival = Undecided.parameterDeclarations[0]
        #expect(try await rival.options()?.isEmpty == true)
        #expect(try await rival.options(matching: "abc")?.map(\.value) == [.single("3")])
        #expect(try await Rival.resolved(from: .single("3")).id == 3)
        #expect(try await Team.options(matching: nil)?.count == 3)
        let id = TeamQuery.ids[1]
        #expect(try await Team.resolved(from: .single(id.uuidString)).id == id)
    }

    /// Showing another entity in its place would present it as the person's choice.
    @Test func anEntityThatIsGoneIsAnErrorWithoutItsName() async throws {
        let error = await #expect(throws: IntentError.self) {
            try await EveryType.resolved(from: ["character": .single("Secret Name")])
        }
        #expect(error?.parameter == "character")
        #expect(!"\(try #require(error))".contains("Secret"))
        let friends = try await EveryType.resolved(
            from: ["friends": .list(["Secret Name", "Spouty"])]
        ).friends
        #expect(friends.map(\.id) == ["Spouty"])
    }

    @Test func aDeletedEntityReachesTheProvider() async throws {
        let runtime = try WidgetDeclarations([
            CharacterDetailWidget().body,
            AppIntentConfiguration(
                kind: "k", intent: SelectFriend.self,
                provider: TextProvider<SelectFriend> {
                    "\($0.friend?.id ?? "nobody") and \($0.rival.id)"
                }),
        ])
        func shown(_ kind: String, _ values: [String: String]) async throws -> any TimelineEntry {
            let info = WidgetInfo(
                kind: kind, family: .systemSmall,
                configuration: values.mapValues { .single($0) })
            return try #require(try await runtime.timeline(of: info).entries.first)
        }
        let placeholder = try await shown(character.kind, ["character": "Gone"])
        #expect(placeholder.date == .distantPast)
        for (values, text) in [
            (["friend": "Gone", "rival": "Spouty"], "nobody and Spouty"),
            (["friend": "Unipony", "rival": "Gone"], "rival is gone"),
        ] {
            let entry = try await shown("k", values) as? GameStatusEntry
            #expect(entry?.gameStatus == text)
        }
        // For an action, nobody may mean everybody.
        await #expect(throws: IntentError.self) {
            try await Greet.resolved(from: ["friend": .single("Gone")])
        }
    }

    /// The error names every parameter that has no value from anywhere.
    @Test func whatCannotWorkIsAnErrorOfTheDeclaration() throws {
        let error = #expect(throws: WidgetDeclarationError.self) {
            try WidgetDeclarations([
                AppIntentConfiguration(
                    kind: "k", intent: Undecided.self,
                    provider: TextProvider<Undecided> { _ in "" })
            ])
        }
        let faults = try #require(error).faults
        #expect(faults.count == 2)
        #expect(faults[0].contains("`rival` of Undecided"))
        #expect(faults[1].contains("`days` of Undecided"))
        let widget = CharacterDetailWidget().body
        #expect(throws: WidgetDeclarationError.self) { try WidgetDeclarations([widget, widget]) }
        #expect(throws: WidgetDeclarationError.self) {
            try WidgetDeclarations([widget.supportedFamilies([])])
        }
        let intents: [any AppIntent.Type] = [L108.self, SuperCharge.self, L108.self]
        let twice = #expect(throws: WidgetDeclarationError.self) {
            try WidgetDeclarations([], intents: intents)
        }
        #expect(twice?.faults == ["the intent L108 is declared twice"])
    }

    /// A widget that is placed with another value than its parameters allow is refused beforehand.
    @Test func valuesAreCheckedWhenAWidgetIsPlaced() throws {
        let runtime = try WidgetDeclarations([CharacterDetailWidget().body])
        #expect(runtime.faults(of: character).isEmpty)
        var wrong = character
        wrong.configuration = ["character": .list(["a"]), "hero": .single("b")]
        #expect(runtime.faults(of: wrong).map(\.parameter) == ["character", "hero"])
        #expect(wrong.id == wrong && wrong.id != character.id, "a list tells them apart")
    }

    /// "Access customized values in your app": the intent of a tapped widget, without waiting.
    @Test func theAppGetsTheIntentOfATappedWidget() async throws {
        let runtime = try WidgetDeclarations([CharacterDetailWidget().body])
        #expect(character.widgetConfigurationIntent(of: SelectCharacterIntent.self) == nil)
        let activity = NSUserActivity(
            widget: await runtime.resolved(character), url: URL(string: "game:///unipony"))
        var received: [String] = []
        Text("app")
            .onContinueUserActivity(character.kind) {
                let intent = $0.widgetConfigurationIntent(of: SelectCharacterIntent.self)
                received.append(intent?.character.avatar ?? "none")
            }
            .onContinueUserActivity("another kind") { _ in received.append("wrong") }
            .onOpenURL { received.append($0.absoluteString) }
            .receive(activity)
        #expect(received.sorted() == ["game:///unipony", "🦄"])
        #expect(activity.widgetConfigurationIntent(of: TitledIntent.self) == nil)
        #expect(activity.userInfo?["kind"] as? String == character.kind)
        let gone = WidgetInfo(
            kind: character.kind, family: .systemSmall,
            configuration: ["character": .single("Nobody")])
        let intent = await runtime.resolved(gone)
            .widgetConfigurationIntent(of: SelectCharacterIntent.self)
        #expect(intent == nil)
    }

    /// Adding interactivity: the button's intent is drawn, archived, and performed.
    @Test func theButtonPerformsItsIntent() async throws {
        let runtime = try WidgetDeclarations(
            [EmojiRangerWidget().body], intents: [SuperCharge.self])
        #expect(runtime.gallery[0].displayName == "EmojiRangerWidget")
        let info = WidgetInfo(kind: "EmojiRangerWidget", family: .systemLarge)
        let entry = try runtime.placeholder(of: info)
        let node = try runtime.draw(entry, of: info, in: environment(.systemLarge))
        #expect(node.widgetURL == "game:///spouty")
        #expect(node.parts.first?.content == .color(.gameBackgroundColor))
        #expect("\(node)".contains("bolt.fill"))
        let call = IntentCall(SuperCharge())
        #expect(node.control(of: call) == .button)
        let before = EmojiRanger.supercharges.withLock { $0 }
        try await runtime.perform(call)
        #expect(EmojiRanger.supercharges.withLock { $0 } == before + 1)
        let small = try runtime.draw(entry, of: info, in: environment(.systemSmall))
        #expect(small == WidgetNode(.text("🐳")))
    }

    @Test func theToggleIsDrawnInBothStatesAndTapped() async throws {
        let runtime = try WidgetDeclarations([], intents: [ToggleTodoIntent.self])
        let home = try environment(.systemSmall)
        let node = home.draw {
            VStack {
                TodoItemView(todo: Todo(id: 7, body: "Milk", complete: false))
                Toggle("Bread", isOn: true, intent: ToggleTodoIntent(8)).toggleStyle(.checkbox)
            }
            .toggleStyle(TodoToggleStyle())
            .toggleStyle(.switch)
        }
        #expect(node.parts.last?.style.toggleStyle == .checkbox)
        #expect(node.parts.last?.parts == [WidgetNode(.text("Bread"))])
        let call = IntentCall(ToggleTodoIntent(7))
        guard case .styledToggle(false, call, let on, let off) = node.parts.first?.content else {
            Issue.record("not drawn in both states")
            return
        }
        #expect(on.parts.map(\.content) == [.image("checkmark.circle.fill"), .text("Milk")])
        #expect(off.parts.first?.content == .image("circle"))
        var interactions = PendingInteractions()
        let steps = try interactions.tap(call, of: status, showing: node, in: home, now: .zero)
        #expect(steps == [.perform])
        #expect(interactions.applied(to: node, of: status).parts.first?.parts == [on])
        try await runtime.perform(call)
        #expect(ToggleTodoIntent.completed.withLock { $0 } == [7])
    }

    @Test func aHiddenToggleTellsItsStateInNeitherLook() throws {
        let hidden = WidgetDeviceState(
            lock: .lockedWithoutPasscode,
            sensitiveContent: SensitiveContentSettings(showsOnLockScreen: false))
        let locked = try WidgetContextRules().environment(
            of: WidgetInfo(kind: "k", family: .accessoryRectangular), with: WidgetTraits(),
            at: .lockScreen, on: WidgetDevice(.iOS), state: hidden)
        let view = { (isSensitive: Bool) in
            Toggle(isOn: true, intent: ToggleTodoIntent(7)) { Text("secret").privacySensitive() }
                .toggleStyle(TodoToggleStyle())
                .privacySensitive(isSensitive)
        }
        #expect(locked.draw { view(true) }.content == .redacted)
        #expect(!"\(locked.draw { view(false) })".contains("secret"))
    }

    /// Creating a widget extension: the gallery, the timeline, the snapshot, and the content.
    @Test func theGameStatusWidgetIsBuiltAndDrawn() async throws {
        let runtime = try WidgetDeclarations([GameStatusWidget().body])
        let widget = runtime.gallery[0]
        #expect(widget.displayName == "Game Status")
        #expect(widget.description == "Shows an overview of your game status")
        #expect(widget.traits.supportedFamilies == [.systemSmall] && widget.parameters.isEmpty)
        #expect(runtime.recommendedKinds.isEmpty)
        let timeline = try await runtime.timeline(of: status)
        let entry = try #require(timeline.entries.first)
        #expect(timeline.reloadDate == entry.date + 15 * 60)
        #expect(
            try runtime.draw(entry, of: status, in: environment(.systemSmall))
                == WidgetNode(.text("Your turn")))
        #expect(
            try runtime.draw(entry, of: status, in: environment(.systemMedium))
                == WidgetNode(.text("not available")))
        #expect((try runtime.placeholder(of: status) as? GameStatusEntry)?.gameStatus == "")
    }

    @Test func ofSeveralCallsTheFirstCountsAndNoCallIsAFailure() async throws {
        func built(_ calls: Int) async throws -> GameStatusEntry? {
            let provider = CallingProvider(calls: calls)
            let runtime = try WidgetDeclarations([
                StaticConfiguration(kind: status.kind, provider: provider)
            ])
            return try await runtime.timeline(of: status).entries.first as? GameStatusEntry
        }
        let entry = try #require(try await built(3))
        #expect(entry.date == .distantPast && entry.gameStatus == "systemSmall")
        await #expect(throws: WidgetFailure.self) { try await built(0) }
    }

    @Test(arguments: [(true, false, "—"), (true, true, "turn 1"), (false, false, "turn 1")])
    func theGallerysPreviewMayBeSampleData(
        isPreview: Bool, hasFetched: Bool, expected: String
    ) async throws {
        let provider = GenerateAPreview.GameStatusProvider(
            hasFetchedGameStatus: hasFetched, gameStatusFromServer: "turn 1")
        let runtime = try WidgetDeclarations([
            StaticConfiguration(kind: status.kind, provider: provider)
        ])
        let entry = try await runtime.snapshot(of: status, isPreview: isPreview)
        #expect((entry as? GameStatusEntry)?.gameStatus == expected)
    }

    /// "Preview widgets in Xcode": the macro's preview is drawn into a file that holds its entry.
    @Test func thePreviewIsRenderedToAFile() async throws {
        let directory = FileManager.default.temporaryDirectory
            .appending(path: "previews-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        var drawn: [String: WidgetNode] = [:]
        // Other tests' widgets, in the same program, declare a preview too.
        for file in try await WidgetPreviews.render(to: directory)
        where !file.path.contains("com-example") {
            let archive = try TimelineArchive(serialized: Array(Data(contentsOf: file)))
            #expect(archive.entries.count == 1)
            drawn[String(file.lastPathComponent.dropFirst(2))] = archive.anyNode(at: .distantFuture)
        }
        #expect(
            drawn == [
                "EmojiRangerWidget-systemMedium.timeline": WidgetNode(.text("🐳")),
                "Game-systemSmall.timeline": WidgetNode(.text("Your turn")),
                "Unipony-systemSmall.timeline": WidgetNode(.text("🦄")),
            ])
    }

    /// Preparing widgets: each rendering mode has its views.
    @Test func eachRenderingModeHasItsViews() throws {
        let full = try environment(.systemSmall, .fullColor).draw { ModesView() }
        #expect(full.parts.map(\.content) == [.text("full color")])
        let accented = try environment(.systemSmall, .accented).draw { ModesView() }
        #expect(accented.parts.map(\.marks) == [.accentable])
        let vibrant = try environment(.accessoryCircular, at: .lockScreen).draw { ModesView() }
        #expect(vibrant.parts.map(\.content) == [.text("vibrant")])
    }
}
