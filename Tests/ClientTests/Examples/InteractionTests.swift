import Foundation
import GatewayTestSupport
import Synchronization
import Testing
import TimelineRuntime
import WidgetModel

/// Two devices of one person, and a widget that the person uses on one of them, with the real
/// daemon over real TLS.
@Suite(.serialized, .timeLimit(.minutes(30))) final class InteractionTests {
    private let backend: Backend
    private let lamp: Lamp

    init() throws {
        backend = try Backend(
            GatewayProcess(), app: CharacterGame.app, catalog: CharacterGame.catalogYAML)
        lamp = Lamp(backend)
        Lamp.current.withLock { $0 = lamp }
    }

    private func device(_ name: String) throws -> Room {
        try Room(
            name, lamp, connection: MovingConnection(try connection(name)),
            archive: try GatewayProcess.temporaryDirectory())
    }

    private func connection(_ name: String) throws -> CurlConnection {
        try backend.connection(of: name, attributes: ["account=42"])
    }

    /// The gateway is killed after the change is answered and has reached the device that made it,
    /// while the other device is away.
    @Test func aGatewayThatIsKilledInBetweenTellsTheOtherDeviceAndNotTheFirst() async throws {
        let (phone, pad) = (try device("phone"), try device("pad"))
        try await phone.running {
            try await phone.waitForBuild(1)
            try await phone.waitForStream()
            try await pad.running {
                try await pad.waitForBuild(1)
                try await pad.waitForStream()
            }
            try await phone.tap()
            try await phone.waitForBuild(2)
            try await eventually("the phone is told") { phone.changesTold == 1 }
            try backend.gateway.restart()
            for device in [phone, pad] { device.connection.move(to: try connection(device.name)) }
            try await pad.running {
                try await pad.waitForBuild(2)
                for device in [phone, pad] { try await device.waitForLight(true) }
                try await phone.waitForStream(2)
                try await pad.waitForStream(2)
                // All earlier notifications have arrived when that of this change has.
                try lamp.toggle()
                for device in [phone, pad] {
                    try await device.waitForBuild(3)
                    try await device.waitForLight(false)
                }
                #expect(phone.builds == 3 && pad.builds == 3)
            }
        }
    }
}

/// The state that the widget shows, as the person's server has it.
private final class Lamp: Sendable {
    /// The instance that the app's code uses.
    static let current = Mutex<Lamp?>(nil)

    private let backend: Backend
    private let isOn = Mutex(false)

    init(_ backend: Backend) { self.backend = backend }

    var isLit: Bool { isOn.withLock { $0 } }

    /// Changes the state, and then posts the change to the gateway.
    func toggle() throws {
        isOn.withLock { $0.toggle() }
        try backend.post(
            Change(entity: "GameStatus", properties: ["turn"], attributes: ["account": ["42"]]))
    }
}

private struct ToggleLamp: AppIntent {
    static let title: LocalizedStringResource = "Toggle the Lamp"

    func perform() async throws -> some IntentResult {
        try Lamp.current.withLock { $0 }?.toggle()
        return .result()
    }
}

private struct LampEntry: TimelineEntry {
    var date: Date
    var isLit: Bool
}

private struct LampProvider: AsyncTimelineProvider {
    let lamp: Lamp
    let built: @Sendable () -> Void

    func placeholder(in context: Context) -> LampEntry { LampEntry(date: .now, isLit: false) }

    func snapshot(in context: Context) async -> LampEntry { placeholder(in: context) }

    func timeline(in context: Context) async -> Timeline<LampEntry> {
        built()
        return Timeline(
            entries: [LampEntry(date: .distantPast, isLit: lamp.isLit)], policy: .never)
    }
}

/// A device with only this widget.
private final class Room: Sendable {
    let name: String
    let connection: MovingConnection
    private let counts: Counts
    private let client: TimelineClient
    private let widget = WidgetInfo(kind: CharacterGame.status, family: .systemSmall)

    private final class Counts: Sendable {
        let builds = Mutex(0)
        let shownBuilds = Mutex(0)
        let streams = Mutex(0)
        let told = Mutex<Set<UInt64>>([])
    }

    init(_ name: String, _ lamp: Lamp, connection: MovingConnection, archive: String) throws {
        self.name = name
        self.connection = connection
        let counts = Counts()
        self.counts = counts
        let configuration = TimelineClientConfiguration(
            app: CharacterGame.app, client: name, platform: "iOS", widgets: [widget],
            observer: { event in
                switch event {
                case .connected: counts.streams.withLock { $0 += 1 }
                case .notified(let claims):
                    counts.told.withLock { _ = $0.insert(claims.sequence) }
                case .rebuilt: counts.shownBuilds.withLock { $0 += 1 }
                default: break
                }
            })
        let provider = LampProvider(lamp: lamp) { counts.builds.withLock { $0 += 1 } }
        client = TimelineClient(
            configuration: try #require(configuration),
            widgets: try WidgetDeclarations(
                [
                    StaticConfiguration(kind: CharacterGame.status, provider: provider) { entry in
                        Toggle(isOn: entry.isLit, intent: ToggleLamp()) {
                            Text(entry.isLit ? "lit" : "dark")
                        }
                    }
                ], intents: [ToggleLamp.self]), connection: connection,
            verifier: PublishedKeyVerifier(connection: connection, app: CharacterGame.app),
            archive: ClientArchive(directory: archive))
    }

    /// The number of requests to the provider.
    var builds: Int { counts.builds.withLock { $0 } }
    /// The number of changes that it was notified of.
    var changesTold: Int { counts.told.withLock(\.count) }

    /// The text of its widget.
    var isLit: Bool {
        get async {
            guard let environment = try? environment,
                let node = await client.shown(widget, in: environment)?.node
            else { return false }
            return "\(node)".contains("lit")
        }
    }

    private var environment: WidgetEnvironment {
        get throws {
            try WidgetContextRules().environment(
                of: widget, with: WidgetTraits(), at: .homeScreen, on: WidgetDevice(.iOS))
        }
    }

    /// Taps the toggle once it is shown: a stream may be open before the first timeline is drawn.
    func tap() async throws {
        let call = IntentCall(intent: "ToggleLamp", parameters: [:])
        try await eventually("the toggle is shown") {
            do {
                try await client.interact(with: call, of: widget, in: try environment)
                return true
            } catch InteractionRefusal.notShown { return false }
        }
    }

    /// Runs the device while `body` runs.
    func running(_ body: () async throws -> Void) async throws {
        let run = Task { await client.run() }
        let result: Result<Void, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        run.cancel()
        await run.value
        try result.get()
    }

    /// Waits until this many timelines were built and shown. A request to the provider is not
    /// enough: it is repeated if the run is cancelled before the answer.
    func waitForBuild(_ count: Int) async throws {
        try await eventually("\(name) shows \(count) timelines") {
            counts.shownBuilds.withLock { $0 } >= count
        }
    }

    /// Waits until the widget shows this state.
    func waitForLight(_ isLit: Bool) async throws {
        try await eventually("\(name) is \(isLit ? "lit" : "dark")") { await self.isLit == isLit }
    }

    func waitForStream(_ count: Int = 1) async throws {
        try await eventually("\(name) is connected") { counts.streams.withLock { $0 } >= count }
    }
}

/// A connection to a gateway that may restart at another address.
private final class MovingConnection: GatewayConnection {
    private let current: Mutex<CurlConnection>

    init(_ connection: CurlConnection) { current = Mutex(connection) }

    func move(to connection: CurlConnection) { current.withLock { $0 = connection } }

    func send(_ request: GatewayRequest) async throws(ConnectionError) -> GatewayResponse {
        try await current.withLock { $0 }.send(request)
    }

    func stream(_ request: GatewayRequest) async throws(ConnectionError) -> GatewayStream {
        try await current.withLock { $0 }.stream(request)
    }
}
