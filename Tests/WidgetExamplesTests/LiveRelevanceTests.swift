import Foundation
import GatewayTestSupport
import Synchronization
import Testing
import TimelineRuntime
import WidgetModel

private struct ChooseBoss: WidgetConfigurationIntent {
    static let title: LocalizedStringResource = "Choose a boss"
    @Parameter(title: "Name", default: "") var name: String

    init() {}

    init(_ name: String) { self.name = name }
}

private struct BossEntry: RelevanceEntry {
    let name: String
}

/// Reads the current data of the game's server.
private struct BossProvider: RelevanceEntriesProvider {
    let server: @Sendable () -> [String]

    func relevance() async throws -> WidgetRelevance<ChooseBoss> {
        WidgetRelevance(
            server().map {
                WidgetRelevanceAttribute(configuration: ChooseBoss($0), context: .date(.now))
            })
    }

    func entry(configuration: ChooseBoss, context: Context) async throws -> BossEntry {
        BossEntry(name: configuration.name)
    }

    func placeholder(context: Context) -> BossEntry { BossEntry(name: "") }
}

/// A widget that people do not place, on a watch connected to a real gateway.
@Suite(.serialized, .timeLimit(.minutes(30))) final class LiveRelevanceTests: Sendable {
    private static let app = "com.mygame"
    private let bosses = Mutex(["Troll"])

    private static let catalog = """
        app: com.mygame
        entities:
          Boss: { properties: [name] }
        widgets:
          - kind: com.mygame.boss
            configuration: relevance
            platforms: [watchOS]
            families: [accessoryRectangular]
            dependsOn:
              - entity: Boss
        """

    @Test func aChangeOnTheServerChangesTheSmartStack() async throws {
        let backend = try Backend(GatewayProcess(), app: Self.app, catalog: Self.catalog)
        let connection = try backend.connection(of: "my-watch")
        let (events, continuation) = AsyncStream.makeStream(of: TimelineClientEvent.self)
        var configuration = try #require(
            TimelineClientConfiguration(
                app: Self.app, client: "my-watch", platform: "watchOS",
                osVersion: OSVersion("26.1")))
        configuration.observer = { continuation.yield($0) }
        let client = TimelineClient(
            configuration: configuration,
            widgets: try WidgetDeclarations([
                RelevanceConfiguration(
                    kind: "com.mygame.boss",
                    provider: BossProvider(server: { self.bosses.withLock { $0 } })
                ) { Text($0.name) }
            ]), connection: connection,
            verifier: PublishedKeyVerifier(connection: connection, app: Self.app))
        let run = Task { await client.run() }
        var iterator = events.makeAsyncIterator()
        func rebuilt() async {
            while let event = await iterator.next() {
                switch event {
                case .registered(let warnings): #expect(warnings.isEmpty)
                case .rebuilt: return
                default: break
                }
            }
        }
        await rebuilt()
        #expect(await client.smartStack().map(\.node) == [WidgetNode(.text("Troll"))])

        bosses.withLock { $0 = ["Dragon", "Troll"] }
        try backend.post(Change(entity: "Boss", id: "2", operation: .insert))
        await rebuilt()
        let names = await client.smartStack().map(\.node.content)
        #expect(Set(names) == [.text("Dragon"), .text("Troll")])
        run.cancel()
        await run.value
    }
}
