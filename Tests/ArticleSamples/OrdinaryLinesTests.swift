import Foundation
import Testing

@testable import TimelineRuntime
@testable import WidgetViews

/// What the ordinary lines are drawn and archived as.
@Suite struct OrdinaryLinesTests {
    private let home: WidgetEnvironment

    init() throws {
        home = try WidgetContextRules().environment(
            of: WidgetInfo(kind: "k", family: .systemSmall), with: WidgetTraits(),
            at: .homeScreen, on: WidgetDevice(.iOS))
    }

    private func drawn(_ view: some View) -> WidgetNode { home.draw { view } }

    private func lines() throws -> [Substring] {
        let file = #filePath.replacing("LinesTests.swift", with: "Lines.swift")
        return try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")
    }

    @Test func atMostTenOfTheLinesDoNotCompile() throws {
        let lines = try lines()
        func numbers(_ lines: [Substring]) -> Set<Substring> {
            Set(lines.flatMap { $0.matches(of: #/\b[lL](\d{3})\b/#).map(\.output.1) })
        }
        #expect(numbers(lines).count >= 120)
        #expect(numbers(lines.filter { $0.hasPrefix("// ") }).count <= 10)
    }

    /// Every view is drawn, and read back from its archived form as it was. What the comment of a
    /// line names is in there.
    @Test func everyViewSurvivesItsArchive() throws {
        let views: [any View] = [
            l001(), l002(), l003(), l004(), l005(), l006(), l007(), l008(), l009(), l010(), l011(),
            l012(), l013(), l014(), l015(), l016(), l017(), l018(), l019(), l020(), l021(), l022(),
            l023(), l024(), l025(), l026(), l027(), l028(), l029(), l030(), l031(), l032(), l033(),
            l034(), l035(), l036(), l037(), l038(), l039(), l040(), l041(), l042(), l043(), l044(),
            l045(), l046(), l047(), l048(), l049(), l050(), l051(), l052(), l053(), l054(), l055(),
            l056(), l057(), l058(), l059(), l060(), l061(), l062(), l063(), l064(), l065(), l066(),
            l067(), l068(), l069(), l070(), l071(), l072(), l073(), l074(), l075(), l076(), l077(),
            l078(), l079(), l080(), l081(), l082(), l083(), l084(), l085(), l086(), l087(), l088(),
            l089(), l090(), L091(), L092(), L093(), L094(), L095(), l123(), l124(), l125(), L126(),
            l139(),
        ]
        for (number, view) in views.enumerated() {
            let node = drawn(view)
            #expect(node != WidgetNode(.stack(.vertical, [])), "view \(number + 1)")
            let read = WidgetNode(try JSONValue(parsing: node.json.serialized))
            #expect(read == node, "view \(number + 1)")
        }
        var count = 0
        for line in try lines() {
            guard let match = line.firstMatch(of: #/func l0(\d\d)\(.*// archived: (.+)/#),
                let number = Int(match.output.1)
            else { continue }
            let view: any View = views[number - 1]
            let archived = drawn(view).json.text
            for value in match.output.2.components(separatedBy: ", ") {
                count += 1
                #expect(archived.contains(value), "\(value) of view \(number)")
            }
        }
        #expect(count == 72)
    }

    @Test func resultsAndPropertiesHoldTheirValues() async throws {
        let counted = try await L108().perform()
        #expect(counted.value == 3 && counted.dialog?.text == "Three")
        #expect(try await L109().perform().dialog?.text == "Done")
        var hero = L116(id: 1)
        hero.name = "Spouty"
        #expect(hero.name == "Spouty")
    }

    @Test func textsMoveAndAreJoined() {
        let timer = drawn(l006())
        #expect(timer.content == .date(Date(timeIntervalSince1970: 1_769_860_800), .timer))
        #expect(timer.style.number(.liveTo) == 1_769_864_400)
        #expect(timer.style[.countsDown] == .flag(false) && !timer.style.isOn(.showsHours))
        let sum = drawn(l010())
        #expect(sum.content == .stack(.text, sum.parts) && sum.parts.count == 2)
        #expect(sum.parts[1].style.isOn(.bold) && sum.parts[1].content == .text("0.5"))
        #expect(drawn(l002()).content == .text("Level 7 of Spouty"))
        #expect(
            drawn(l022()).parts.map(\.content) == [
                .date(Date(timeIntervalSince1970: 1_769_864_400), .relative), .text(" left"),
            ])
        let bold = drawn(Text("\(Text("Hi").bold()), \(2)%")).parts
        #expect(bold.map(\.content) == [.text("Hi"), .text(", 2%")] && bold[0].style.isOn(.bold))
        #expect(drawn(l023()).content == .text("Hello"))
    }

    /// The order of modifiers is kept: what is said later is around what was said before.
    @Test func modifiersAreAroundEachOther() {
        let padded = drawn(Text("a").frame(width: 10).padding(2))
        #expect(padded.content == .text("a") && padded.style.padding?.top == 2)
        let framed = drawn(Text("a").padding(2).frame(width: 10))
        #expect(framed.style.number(.width) == 10 && framed.style.padding == nil)
        #expect(framed.parts.first?.style.padding?.top == 2)
        let wide = drawn(l063())
        #expect(wide.style.number(.maxWidth) == .infinity)
        #expect(wide.style.text(.frameAlignment) == "topLeading")
        #expect(drawn(Text("a").rotationEffect(.degrees(.infinity))).style.number(.rotation) == nil)
        let inner = drawn(VStack { Text("a").lineLimit(1) }.lineLimit(2))
        #expect(inner.style.number(.lineLimit) == 2)
        #expect(inner.parts.first?.style.number(.lineLimit) == 1)
        let turned = drawn(Text("a").offset(x: 1).rotationEffect(.degrees(90)))
        #expect(turned.style.numbers(.offset) == nil && turned.style.number(.rotation) == 90)
        #expect(turned.parts.first?.style.numbers(.offset) == [1, 0])
        let layers = drawn(l067())
        #expect(layers.style.number(.sizingPart) == 0 && layers.style.alignment == .bottomTrailing)
    }

    /// Effects tell of the content as much as a color does, so a placeholder has none.
    @Test func hiddenContentKeepsItsPlaceOnly() {
        let view = Text("done").strikethrough().foregroundStyle(.red).accessibilityLabel("done")
            .frame(width: 20).opacity(0.5).privacySensitive().redacted(reason: .privacy)
        let node = drawn(view)
        #expect(!"\(node)".contains("done") && !"\(node)".contains("strikethrough"))
        #expect(!"\(node)".contains("\"red\"") && "\(drawn(Color.red))".contains("\"red\""))
        #expect("\(node)".contains("width"))
        #expect(drawn(l082()).marks == .invalidated)
        #expect(drawn(Text("a").hidden().redacted(reason: .placeholder)).style.isOn(.hidden))
    }

    /// Content that an archive could not be read back with is refused when it is drawn.
    @Test(arguments: [(20, false), (40, true)])
    func contentThatIsTooDeepIsRefused(depth: Int, isRefused: Bool) {
        struct Deep: View {
            let rest: Int
            var body: some View { VStack { if rest > 0 { Deep(rest: rest - 1) } } }
        }
        let intents = DrawnIntents()
        _ = DrawnIntents.$current.withValue(intents) { drawn(Deep(rest: depth)) }
        #expect((intents.fault != nil) == isRefused)
    }

    @Test func gaugesAndProgressHaveTheirLabels() {
        guard case .gauge(0.3, let labels) = drawn(l034()).content else {
            Issue.record("not drawn as a gauge")
            return
        }
        #expect(labels.content == .stack(.gaugeLabels, labels.parts))
        #expect(labels.parts.map(\.content) == [.text("HP"), .text("3"), .text("0"), .text("10")])
        let live = drawn(l038())
        #expect(live.style.number(.liveFrom) == 1_769_860_800)
        #expect(live.style.text(.progressStyle) == "linear")
        #expect(drawn(l040()).style.text(.progressStyle) == "circular")
        #expect(drawn(l031()).content == .image("heart"))
    }

    /// Cells fill as many columns as fit, row by row; or the stated rows, column by column.
    @Test func lazyGridsHaveRowsAndColumns() {
        func rows(_ grid: some View) -> [[WidgetNode.Content]] {
            drawn(grid).parts.map { $0.parts.map(\.content) }
        }
        let cells = ForEach(0..<5) { Text("\($0)") }
        let down = LazyVGrid(columns: [GridItem(.adaptive(minimum: 40))]) { cells }
        #expect(rows(down) == [[.text("0"), .text("1"), .text("2")], [.text("3"), .text("4")]])
        let across = LazyHGrid(rows: [GridItem(), GridItem(.fixed(20))]) { cells }
        #expect(rows(across) == [[.text("0"), .text("2"), .text("4")], [.text("1"), .text("3")]])
    }

    @Test func textsAreTranslatedForTheLocaleOfTheirView() throws {
        var catalog = StringCatalog()
        let file = #"""
            {"sourceLanguage": "en", "version": "1.0", "strings": {"Level %lld of %@": {
              "localizations": {"de": {"stringUnit": {"value": "%2$@ auf Stufe %1$lld (100 %%)"}}}}}}
            """#
        let unit = #"{"stringUnit": {"value": "Hoi"}}"#
        let game = #"{"strings": {"Greeting": {"localizations": {"de": \#(unit)}}}}"#
        let isAdded = [
            catalog.add(Array(file.utf8)), catalog.add(Array(game.utf8), table: "Game"),
            catalog.add(Array("[]".utf8)),
        ]
        #expect(isAdded == [true, true, false])
        let german = VStack {
            l002()
            l020()
        }.environment(\.locale, Locale(identifier: "de_CH"))
        let node = catalog.translating { drawn(german) }
        #expect(node.parts.map(\.content) == [.text("Spouty auf Stufe 7 (100 %)"), .text("Hoi")])
        #expect(catalog.translating { drawn(l002()) }.content == .text("Level 7 of Spouty"))
    }

    @Test func theEnvironmentIsReadAndWritten() throws {
        let big = WidgetDevice(
            .watchOS, locale: Locale(identifier: "de"), dynamicTypeSize: .accessibility1)
        let face = try WidgetContextRules().environment(
            of: WidgetInfo(kind: "k", family: .accessoryCorner), with: WidgetTraits(),
            at: .watchFace, on: big)
        #expect(face.draw { L091() }.content == .text("de"))
        #expect(face.draw { L092() }.content == .text("big"))
        #expect(face.draw { L095() }.content == .text("label"))
        #expect(drawn(L093()).style.padding == home.widgetContentMargins)
        for (detail, text) in [(LevelOfDetail.simplified, "far"), (.default, "near")] {
            var state = WidgetDeviceState()
            state.levelOfDetail = detail
            let wall = try WidgetContextRules().environment(
                of: WidgetInfo(kind: "k", family: .systemSmall), with: WidgetTraits(),
                at: .surface, on: WidgetDevice(.visionOS), state: state)
            #expect(wall.draw { L094() }.content == .text(text))
        }
        struct Own: View {
            @Environment(\.l097) var value
            var body: some View { Text(value) }
        }
        #expect(drawn(Own()).content == .text("plain"))
        #expect(drawn(Own().environment(\.l097, "fancy")).content == .text("fancy"))
        #expect(l098(TimelineProviderContext(family: .systemSmall)) == [.light, .dark])
    }

    /// A bundle holds widgets and controls; a control's toggle performs its intent with the new
    /// state.
    @Test func aControlIsDrawnWithItsValue() async throws {
        let runtime = try WidgetDeclarations(L099(), intents: [SetLamp.self])
        #expect(runtime.gallery.map(\.kind) == ["com.mygame.game-status", "EmojiRangerWidget"])
        #expect(try WidgetDeclarations(L099(hasHeroes: false)).gallery.count == 1)
        #expect(runtime.controls.map(\.displayName) == ["Lamp"])
        let node = try await runtime.control(ofKind: "lamp")
        guard case .styledToggle(true, let call, let on, let off) = node.content else {
            Issue.record("not drawn as a toggle")
            return
        }
        #expect(call == IntentCall(intent: "SetLamp", parameters: ["value": .single("false")]))
        #expect("\(on)".contains("On") && "\(off)".contains("Off"))
        await #expect(throws: WidgetFailure.self) { try await runtime.control(ofKind: "tv") }
        let traits = l100().declaration.traits
        #expect(traits.disablesContentMargins && l100().declaration.asksForConfiguration)
        #expect(l102().declaration.traits.texture == .paper)
    }

    /// An editor reads types, bounds, options and a sentence; what they exclude is refused.
    @Test func parametersAreReadByAnEditor() async throws {
        let level = L110.parameterDeclarations
        #expect(level[0].type == .wholeNumber && level[0].range == 1...10)
        #expect(level.faults(in: ["level": .single("10")]).isEmpty)
        #expect(level.faults(in: ["level": .single("11")]).map(\.parameter) == ["level"])
        #expect(level.faults(in: ["level": .single("many")]).count == 1)
        await #expect(throws: IntentError.self) {
            try await L110.resolved(from: ["level": .single("0")])
        }
        let teams = try #require(try await L111.parameterDeclarations[0].options(matching: "re"))
        #expect(teams.map(\.value) == [.single("Red")])
        #expect(L112.parameterDeclarations.map(\.type) == [.url, .date])
        let visit = try await L112.resolved(from: ["site": .single("https://example.com")])
        #expect(visit.site?.host() == "example.com" && visit.day == nil)
        var walk = L120()
        walk.distance = Measurement(value: 1.5, unit: UnitLength.kilometers)
        #expect(walk.parameters == ["distance": .single("1500")], "of the base unit")
        #expect(try await L120.resolved(from: walk.parameters).distance == walk.distance)
        #expect(L120.parameterDeclarations.map(\.type) == [.number])
        #expect(L113.parameterSummary.sentence == "Show ${City}")
        #expect(SelectCharacterIntent.parameterSummary.sentence.isEmpty)
        #expect(L114.parameterType == .choice(["1", "2"]))
        #expect(L114.two.parameterValue == .single("2"))
        #expect(try L114.resolved(from: .single("1")) == .one)
        #expect(try L138.resolved(from: L138.angry.parameterValue) == .angry)
        #expect(l115.image?.isSystem == true && l118.categoryName == "Fight")
    }
}
