import ArgumentParser
import Foundation
import Synchronization
import Testing
import WidgetModel

@testable import TimelineRuntime
@testable import WidgetViews
@testable import timelinectl

private struct BridgeEntry: TimelineEntry {
    let date: Date
    let name: String
}

private struct BridgeProvider: AsyncTimelineProvider {
    static let start = Date(timeIntervalSince1970: 1_769_860_800)

    func placeholder(in context: Context) -> BridgeEntry {
        BridgeEntry(date: .distantPast, name: "Bridge")
    }
    func snapshot(in context: Context) async -> BridgeEntry { placeholder(in: context) }
    func timeline(in context: Context) async -> Timeline<BridgeEntry> {
        Timeline(
            entries: [
                BridgeEntry(date: Self.start, name: "Old\u{1B}[2J 🌉"),
                BridgeEntry(date: Self.start + 3600, name: "New"),
            ], policy: .after(Self.start + 7200))
    }
}

private struct BridgeView: View {
    @Environment(\.widgetRenderingMode) private var mode
    let entry: BridgeEntry

    var body: some View {
        VStack {
            HStack {
                Image("arch")
                VStack {
                    Text(entry.name)
                    Text("secret").privacySensitive()
                }
                Text("\(mode)")
            }
            Gauge(value: 0.25) { Text("load") }
            Toggle(isOn: true, intent: TapIntent("x")) { Text("lit") }
            Button("Open", intent: TapIntent("y"))
        }
        .containerBackground(for: .widget) { Image("river") }
        .widgetURL(URL(string: "bridge://1"))
    }
}

/// The output of `timelinectl show` for archives that a client wrote.
@Suite(.timeLimit(.minutes(30))) struct ShowCommandTests {
    private let directory = FileManager.default.temporaryDirectory
        .appending(path: "show-\(UUID().uuidString)").path
    private let info = WidgetInfo(kind: "bridge", family: .systemSmall)
    private let date = "2026-01-31T12:30:00Z"

    /// Lets a client build the widgets, and stops it.
    private func build(
        _ widgets: [WidgetInfo]? = nil, protection: DataProtection? = nil,
        relevance: CardProvider? = nil
    ) async throws {
        let gateway = try ScriptedGateway()
        let configuration = try #require(
            TimelineClientConfiguration(
                app: "com.mygame", client: "device-1",
                platform: relevance == nil ? "iOS" : "watchOS", osVersion: OSVersion("26"),
                widgets: widgets ?? [info, info]))
        let client = TimelineClient(
            configuration: configuration,
            widgets: try WidgetDeclarations(
                [
                    StaticConfiguration(kind: info.kind, provider: BridgeProvider()) { entry in
                        BridgeView(entry: entry)
                    }
                ]
                    + (relevance.map { provider in
                        [RelevanceConfiguration(kind: "card", provider: provider) { Text($0.text) }]
                    } ?? []), intents: [TapIntent.self], dataProtection: protection),
            connection: gateway,
            verifier: PublishedKeyVerifier(connection: gateway, app: "com.mygame"),
            archive: ClientArchive(directory: directory))
        try await gateway.running(client) {}
    }

    private func show(_ arguments: String...) throws -> [WidgetReport] {
        try ShowCommand.parse([directory, "--at", date] + arguments).reports()
    }

    @Test func aWidgetIsDrawnAsItsDeviceShowsIt() async throws {
        try await build()
        #expect(
            try show().map(\.text) == [
                """
                bridge  systemSmall  ×2
                fresh, homeScreen fullColor, since 2026-01-31T12:00:00Z, next \
                2026-01-31T13:00:00Z, reload 2026-01-31T14:00:00Z
                ╭───────────────────────────────╮
                │ ░ [river]                     │
                │ [arch]  Old\u{FFFD}[2J 🌉  fullColor │
                │         secret                │
                │ load ███░░░░░░░ 25 %          │
                │ ☑ lit                         │
                │ ( Open )                      │
                ╰───────────────────────────────╯
                opens bridge://1
                """
            ])
    }

    @Test func contextsAreChosen() async throws {
        try await build()
        let accented = try #require(try show("--mode", "accented").first)
        #expect(accented.text.contains("homeScreen accented"))
        #expect(!accented.text.contains("river"), "accents take the background away")
        let locked = try #require(try show("--location", "standBy", "--locked").first)
        #expect(locked.text.contains("▒▒▒▒▒") && !locked.text.contains("secret"))
        #expect(locked.text.contains("inactive until the person unlocks"))
        let face = try #require(try show("--location", "watchFace").first)
        #expect(face.state == .hidden && face.node == nil)
        #expect(face.faults.count == 1 && face.faults[0].contains("not for watch faces"))
    }

    /// A locked device shows nothing of a widget whose files are protected in that state.
    @Test(arguments: DataProtection.allCases)
    func aLockHidesWhatTheWidgetProtects(protection: DataProtection) async throws {
        try await build(protection: protection)
        let isHidden = protection.hidesContent(while: .lockedWithPasscode)
        let locked = try #require(try show("--locked").first)
        #expect(locked.state == (isHidden ? .placeholder : .fresh))
        #expect(locked.text.contains("25 %") != isHidden)
        #expect(try show().first?.state == .fresh)
    }

    @Test func aWidgetThatNobodyPlacesIsDrawnAsOftenAsItIsRelevant() async throws {
        let cards = CardProvider()
        let start = BridgeProvider.start
        cards.state.withLock {
            $0.relevant = [
                ("quest", .date(from: start, to: start + 3600)),
                ("boss", .date(from: start + 60, to: start + 3600)),
                ("later", .date(from: start + 7200, to: start + 7260)),
            ]
        }
        try await build([], relevance: cards)
        let shown = try show()
        #expect(shown.map { $0.node?.texts } == [["quest 172"], ["boss 172"]])
        #expect(shown.map(\.entry) == [start, start + 60])
        #expect(shown.allSatisfy { $0.state == .fresh && $0.nextEntry == start + 7200 })
        #expect(shown.allSatisfy { $0.environment?.location == .smartStack })
        for (arguments, reason) in [
            (["--at", "2026-01-31T13:00:00Z"], "no entry of it is relevant now"),
            (["--location", "watchFace"], "only the Smart Stack shows it"),
        ] {
            let report = try #require(
                try ShowCommand.parse([directory, "--at", date] + arguments).reports().first)
            #expect(report.state == .hidden && report.node == nil)
            #expect(report.faults == [reason])
        }
    }

    @Test func whatIsDamagedOrNotBuiltIsAPlaceholder() async throws {
        try await build()
        let path = ClientArchive(directory: directory).timelinePath(info)
        try Data("{}".utf8).write(to: URL(filePath: path))
        #expect(try show().map(\.faults) == [["its timeline is damaged"]])
        try FileManager.default.removeItem(atPath: path)
        let report = try #require(try show().first)
        #expect(report.state == .placeholder && report.node != nil)
        #expect(report.entry == nil && report.faults.isEmpty)
        #expect(report.text.contains("▒▒▒▒▒"))
    }

    /// A stale timeline keeps its cursor while those of the others advance.
    @Test func whatTheArchiveKnowsToBeStaleIsStale() async throws {
        try await build()
        let archive = ClientArchive(directory: directory)
        var document = try #require(archive.load(owner: "com.mygame device-1"))
        document.state.position = cursor(1_000)
        try archive.save(document)
        #expect(try show().map(\.state) == [.stale])
    }

    @Test func programsReadOneDocumentForEachWidget() async throws {
        try await build()
        let object = try #require(try show().first?.json.objectValue)
        #expect(object["kind"] == "bridge" && object["count"] == 2 && object["state"] == "fresh")
        #expect(object["location"] == "homeScreen" && object["mode"] == "fullColor")
        #expect(object["entry"] == "2026-01-31T12:00:00Z")
        #expect(object["content"]?.objectValue?["widgetURL"] == "bridge://1")
    }

    @Test(arguments: [
        ["--at", "noon"], ["--mode", "red"], ["--kind", "brigde"], ["--family", "x"],
        ["--location", "moon"], ["--json", "--format", "svg"], ["--gallery"],
        ["--output", "x.svg"], ["--locale", "zz"], ["--tint", "reddish"],
    ])
    func aWrongCommandLineIsRefused(arguments: [String]) async throws {
        #expect(throws: ValidationError.self, "it is no archive") { try show() }
        try await build()
        #expect(throws: (any Error).self) {
            try ShowCommand.parse([directory] + arguments).drawing(.svg)
        }
    }

    private func lines(@ViewBuilder _ view: () -> some View) throws -> [String] {
        try info.environment().draw(view).drawing(at: .now).lines
    }

    @Test func aTerminalShowsOfAStyleWhatItCan() throws {
        let styled = try lines {
            VStack(alignment: .trailing) {
                Text("ab")
                Spacer()
                HStack(alignment: .bottom) {
                    Text("c")
                    VStack {
                        Toggle(isOn: true, intent: TapIntent("x")) { Text("d") }
                        Toggle(isOn: false, intent: TapIntent("y")) { Text("e") }
                            .toggleStyle(.checkbox)
                    }
                }
            }
            .toggleStyle(.switch)
        }
        #expect(styled == ["     ab", "       ", "   d ━●", " c  ☐ e"])
        let read = try lines {
            Text("a").background(.red)
            ViewThatFits {
                Text("long")
                Text("short")
            }
            Text("b") + Text("c")
        }
        #expect(read == ["a", "long", "bc"])
    }

    @Test func aWidgetIsDrawnAsAPicture() async throws {
        try await build()
        func drawn(_ format: PictureFormat, _ arguments: String...) throws -> String {
            let command = try ShowCommand.parse(
                [directory, "--at", date, "--format", format.rawValue] + arguments)
            return String(decoding: try command.drawing(format), as: UTF8.self)
        }
        let open = try drawn(.svg)
        #expect(open.contains(">load<"))
        #expect(!open.contains("\u{1B}") && open.contains("homeScreen, fullColor, light"))
        let locked = try drawn(.svg, "--location", "standBy", "--locked")
        #expect(!locked.contains("secret") && locked.contains("locked"))
        #expect(try drawn(.html).components(separatedBy: "<figure>").count == 2)
        let environments = WidgetContextRules().drawnEnvironments(
            of: info, with: WidgetTraits(), on: WidgetDevice(.iOS, osVersion: OSVersion("26")))
        let page = try drawn(.html, "--gallery")
        let figures = page.components(separatedBy: "<figure>").dropFirst()
        // Those, low light, and the placeholder.
        #expect(figures.count == environments.count + 2)
        #expect(figures.filter { $0.contains("low light") }.count == 1)
        for figure in figures where figure.contains(", locked") {
            #expect(!figure.contains("secret"))
        }
    }

    @Test func aMissingProgramIsNoPicture() {
        #expect(throws: ValidationError.self) {
            try PictureFormat.png(of: "<svg/>", program: "no-such-program")
        }
    }

    @Test(arguments: [("a", 1), ("🦔", 2), ("❤️", 2), ("👩‍👧", 2), ("e\u{301}", 1), ("橋", 2), ("한", 2)])
    func aTerminalGivesEmojiTwoColumns(text: String, columns: Int) {
        #expect(TextBlock(text).width == columns)
        #expect(TextBlock(text).lines == [text])
    }
}
