import Foundation
import GatewaySigning
import Testing
import WidgetModel

@testable import TimelineGatewayClient
@testable import TimelineRuntime
@testable import WidgetViews

private struct Rooms: WidgetConfigurationIntent {
    static let title: LocalizedStringResource = "Rooms"

    @Parameter(title: "Floor", default: 2) var floor: Int
    @Parameter(title: "Name") var name: String?
}

private struct RoomSwitch: ControlConfigurationIntent {
    static let title: LocalizedStringResource = "Room"

    @Parameter(title: "Room") var room: String?
}

private struct RoomsProvider: AppIntentTimelineProvider {
    struct Entry: TimelineEntry { var date: Date }

    func placeholder(in context: Context) -> Entry { Entry(date: .now) }

    func snapshot(for configuration: Rooms, in context: Context) async -> Entry {
        Entry(date: .now)
    }

    func timeline(for configuration: Rooms, in context: Context) async -> Timeline<Entry> {
        Timeline(entries: [Entry(date: .now)], policy: .never)
    }
}

private struct RoomsWidget: Widget {
    var body: some WidgetConfiguration {
        AppIntentConfiguration(kind: "rooms", intent: Rooms.self, provider: RoomsProvider())
            .supportedFamilies([.systemLarge, .systemSmall])
    }
}

/// Tests how `main()` of a widget reads its environment. The tests of the tutorial and of the lamp
/// check that it keeps the widget current.
@Suite struct WidgetExtensionProgramTests {
    private let environment: [String: String]

    init() throws {
        let issuer = TokenIssuer(key: try SigningKey(), iss: "i", aud: "a")
        environment = [
            "TIMELINE_GATEWAY_URL": "https://127.0.0.1:1",
            "TIMELINE_GATEWAY_TOKEN": try issuer.issue(
                sub: "my-phone", app: "com.mygame", scopes: [.client], ttl: 60, attributes: [:],
                now: 0) + "\n",
            "TIMELINE_CLIENT_ARCHIVE": NSTemporaryDirectory() + UUID().uuidString,
        ]
    }

    private func client(_ changes: [String: String] = [:]) async throws -> TimelineClient {
        try await WidgetExtensionProgram.client(
            WidgetDeclarations([RoomsWidget().body]),
            environment: environment.merging(changes) { $1 })
    }

    @Test func itsTextsAreTranslatedByTheStatedCatalog() async throws {
        let path = NSTemporaryDirectory() + "\(UUID().uuidString).xcstrings"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let unit = #"{"stringUnit": {"value": "Stock"}}"#
        try #"{"strings": {"Floor": {"localizations": {"en": \#(unit)}}}}"#
            .write(toFile: path, atomically: true, encoding: .utf8)
        let client = try await client([
            "TIMELINE_CLIENT_STRINGS": path, "TIMELINE_CLIENT_DYNAMIC_TYPE": "xLarge",
        ])
        #expect(await client.configuration.dynamicTypeSize == .xLarge)
        let table = URL(filePath: path).deletingPathExtension().lastPathComponent
        var text = LocalizedStringResource("Floor")
        text.table = table
        #expect(await client.declared.strings.translating { text.text } == "Stock")
        for name in ["STRINGS", "DYNAMIC_TYPE"] {
            await #expect(throws: WidgetExtensionProgram.Fault.self) {
                try await self.client(["TIMELINE_CLIENT_\(name)": "/dev/null"])
            }
        }
    }

    @Test func itsDeclarationsAreACatalog() async throws {
        let declarations = try WidgetDeclarations(
            [
                RoomsWidget().body,
                StaticConfiguration(kind: "door", provider: TapProvider(list: "")),
            ],
            controls: [
                AppIntentControlConfiguration(kind: "switch", intent: RoomSwitch.self) { chosen in
                    ControlWidgetButton(action: TapIntent("")) { Text(chosen.room ?? "nowhere") }
                }.displayName("Light")
            ])
        let hall = try await declarations.control(
            ofKind: "switch", with: ["room": .single("hall")])
        #expect(hall.texts == ["hall"])
        let catalog = declarations.catalog.objectValue
        #expect(
            catalog?["intents"] == [
                "Rooms": [
                    "parameters": [
                        ["name": "floor", "title": "Floor", "type": "Int"],
                        ["name": "name", "title": "Name", "type": "String"],
                    ]
                ],
                "RoomSwitch": [
                    "parameters": [["name": "room", "title": "Room", "type": "String"]]
                ],
            ])
        let widgets = catalog?["widgets"]?.arrayValue ?? []
        #expect(widgets.first?.objectValue?["configuration"] == "static")
        #expect(widgets.first?.objectValue?["families"]?.arrayValue?.count == 9)
        #expect(
            widgets.dropFirst() == [
                [
                    "kind": "rooms", "configuration": "appIntent", "intent": "Rooms",
                    "families": ["systemLarge", "systemSmall"],
                ],
                [
                    "kind": "switch", "configuration": "control", "intent": "RoomSwitch",
                    "displayName": "Light",
                ],
            ])
    }

    @Test func theTokenSaysWhoItIsAndEachWidgetIsPlacedOnce() async throws {
        let client = try await client()
        let configuration = await client.configuration
        #expect(configuration.app == "com.mygame")
        #expect(configuration.client == "my-phone")
        #expect(configuration.platform == "iOS")
        #expect(
            await client.placedWidgets == [
                WidgetInfo(
                    kind: "rooms", family: .systemLarge,
                    configuration: ["floor": .single("2"), "name": .unset])
            ])
    }

    @Test func aFileSaysWhatIsPlacedWhere() async throws {
        let path = NSTemporaryDirectory() + UUID().uuidString
        defer { try? FileManager.default.removeItem(atPath: path) }
        let text = """
            {"platform": "watchOS", "osVersion": "26.1", "attributes": {"theme": "dark"},
             "widgets": [{"kind": "rooms", "family": "systemSmall", "count": 2,
                          "parameters": {"floor": 3}}]}
            """
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        let client = try await client(["TIMELINE_CLIENT_REGISTRATION": path])
        let configuration = await client.configuration
        #expect(configuration.platform == "watchOS")
        #expect(configuration.osVersion == OSVersion("26.1"))
        #expect(configuration.attributes == ["theme": ["dark"]])
        #expect(configuration.delivery == [.stream])
        let widget = WidgetInfo(
            kind: "rooms", family: .systemSmall, configuration: ["floor": .single("3")])
        #expect(await client.placedWidgets == [widget, widget])
        try #"{"widgets": 3}"#.write(toFile: path, atomically: true, encoding: .utf8)
        await #expect(throws: WidgetExtensionProgram.Fault.self) {
            try await self.client(["TIMELINE_CLIENT_REGISTRATION": path])
        }
    }

    @Test(arguments: [
        ("TIMELINE_GATEWAY_URL", ""), ("TIMELINE_GATEWAY_TOKEN", ""),
        ("TIMELINE_CLIENT_ARCHIVE", ""), ("TIMELINE_GATEWAY_TOKEN", "secret"),
        ("TIMELINE_CLIENT_REGISTRATION", "/nowhere/else"),
    ])
    func whatIsMissingOrWrongIsNamedButNotShown(variable: String, value: String) async throws {
        let error = await #expect(throws: WidgetExtensionProgram.Fault.self) {
            try await client([variable: value])
        }
        let text = try #require(error?.description)
        #expect(text.contains(variable) && (value.isEmpty || !text.contains(value)))
    }
}
