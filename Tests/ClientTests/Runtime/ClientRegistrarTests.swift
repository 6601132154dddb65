import Foundation
import Synchronization
import Testing
import WidgetModel

@testable import TimelineGatewayClient
@testable import TimelineRuntime
@testable import WidgetViews

private let pushes = Mutex<[(WidgetPushInfo, [WidgetInfo])]>([])

private struct GamePushHandler: WidgetPushHandler {
    func pushTokenDidChange(_ pushInfo: WidgetPushInfo, widgets: [WidgetInfo]) {
        pushes.withLock { $0.append((pushInfo, widgets)) }
    }
}

private let boosts = Mutex<[[ControlInfo]]>([])

private struct BoostPushHandler: ControlPushHandler {
    func pushTokensDidChange(controls: [ControlInfo]) { boosts.withLock { $0.append(controls) } }
}

/// Three processes of one app, each of them knowing only a part of the app's registration.
@Suite(.timeLimit(.minutes(30))) struct ClientRegistrarTests {
    private let panda = character("Power Panda")
    private let gateway: ScriptedGateway
    private let archive = ClientArchive(
        directory: NSTemporaryDirectory() + "registrar-\(UUID().uuidString)")
    private let push = WidgetPushInfo(token: Data([0x00, 0x0F, 0xA0]))

    init() throws { gateway = try ScriptedGateway() }

    private func registrar(_ archive: ClientArchive?) throws -> ClientRegistrar {
        try #require(
            ClientRegistrar(
                app: "com.mygame", client: "device-1", connection: gateway, environment: .sandbox,
                archive: archive))
    }

    private func client() throws -> TimelineClient {
        func configuration(_ kind: String) -> some WidgetConfiguration {
            AppIntentConfiguration(
                kind: kind, intent: SelectCharacterIntent.self, provider: CharacterProvider())
        }
        return TimelineClient(
            configuration: try #require(
                TimelineClientConfiguration(
                    app: "com.mygame", client: "device-1", platform: "iOS",
                    widgets: [panda, status])),
            widgets: try WidgetDeclarations(
                [
                    configuration(panda.kind).pushHandler(GamePushHandler.self),
                    configuration("com.mygame.other").pushHandler(GamePushHandler.self),
                    configuration(status.kind),
                ],
                controls: [control.kind, "com.mygame.turbo"].map { kind in
                    StaticControlConfiguration(kind: kind) {
                        ControlWidgetButton("Boost", action: TapIntent(""))
                    }.pushHandler(BoostPushHandler.self)
                }), connection: gateway,
            verifier: PublishedKeyVerifier(connection: gateway, app: "com.mygame"),
            archive: archive)
    }

    private let delivery: JSONValue = [
        ["type": "stream"],
        ["type": "apns", "pushType": "widgets", "token": "000fa0", "environment": "sandbox"],
    ]

    private let control = ControlInfo(
        id: "c1", kind: "com.mygame.boost", pushInfo: ControlPushInfo(token: Data([1])))

    @Test func eachTellsItsPartAlone() async throws {
        defer { try? FileManager.default.removeItem(atPath: archive.directory) }
        gateway.read { $0.knowsClient = true }
        try await registrar(archive).register(push)
        try await registrar(archive).register([control])
        let told = gateway.read { $0.registrations }
        #expect(gateway.read { $0.methods } == ["PATCH", "PATCH"])
        #expect(told[0] == ["delivery": delivery])
        #expect(told[1].objectValue?.members.map(\.name) == ["controls"])
        let first = told[1].objectValue?["controls"]?.arrayValue?.first?.objectValue
        #expect(first?["id"] == "c1")
        #expect(first?["delivery"]?.objectValue?["pushType"] == "controls")
        #expect(first?["delivery"]?.objectValue?["token"] == "01")
    }

    @Test func whatIsKnownBeforeTheClientIsRegisteredIsRegisteredWithIt() async throws {
        defer { try? FileManager.default.removeItem(atPath: archive.directory) }
        try await registrar(archive).register(push)
        try await registrar(archive).register([control])
        #expect(gateway.read { $0.registrations.isEmpty })
        let run = Task { [client = try client()] in await client.run() }
        await gateway.wait { $0.registrations.count == 1 }
        run.cancel()
        await run.value
        let told = gateway.read { $0.registrations[0].objectValue }
        #expect(gateway.read { $0.methods } == ["PUT"])
        #expect(told?["delivery"] == delivery)
        #expect(told?["controls"]?.arrayValue?.count == 1)
        #expect(told?["widgets"]?.arrayValue?.count == 2)
    }

    @Test func withoutAnArchiveAnUnknownClientIsAFailure() async throws {
        let registrar = try registrar(nil)
        await #expect(throws: GatewayFailure.self) { try await registrar.register(push) }
    }

    @Test func aHandlerIsToldOfTheTokenAndOfWhatIsPlaced() async throws {
        let client = try client()
        pushes.withLock { $0 = [] }
        #expect(await client.widgetCenter.currentPushInfo == nil)
        await client.place([panda, status])
        await client.set(pushInfo: push)
        await client.set(pushInfo: push)
        await client.place([panda, panda, status])
        await client.place([status])
        let told = pushes.withLock { $0 }
        #expect(told.map(\.0) == [push, push])
        #expect(told.map(\.1) == [[panda], []])
        #expect(await client.widgetCenter.currentPushInfo == push)
        await client.set(controls: [control])
        #expect(boosts.withLock { $0 } == [[control]], "once, for both kinds")
    }

    /// A patch turns the last registration into the next: the gateway then has what this process
    /// knows now, and the parts that other processes registered are untouched.
    @Test func aPatchMakesOfTheLastRegistrationTheNext() {
        var random = SplitMix64(seed: 5)
        func any() -> ClientRegistration {
            var next = registration(
                [panda, status].filter { _ in Bool.random(using: &random) },
                sets: Bool.random(using: &random) ? [] : [recommended(panda.kind, ["a"])])
            for name in ["a", "b", "c"] where Bool.random(using: &random) {
                next.attributes[name] = [["x"], ["x", "y"]].randomElement(using: &random)
            }
            next.osVersion = Bool.random(using: &random) ? nil : OSVersion("26.1")
            return next
        }
        for _ in 0..<500 {
            let (last, next) = (any(), any())
            var held = last
            held.controls = [PlacedControl(kind: "k", id: "c1")]
            let patch = next.patch(since: last, completed: next)
            let merged = held.json(maskingTokens: false).merging(patch: patch)
            var expected = next
            expected.controls = held.controls
            let read = try? ClientRegistration.read(merged, limits: .archive).registration
            #expect(read == expected)
        }
    }
}

/// The article's heading "Offer configurable widgets and complications on Apple Watch".
@Suite struct RecommendationOfferTests {
    @Test(arguments: [
        (["Unipony"], "11.6", "preconfigured"), (["Unipony"], "26.0", "preconfigured"),
        ([], "11.6", "none"), ([], "26.0", "configurable"), ([], nil, "configurable"),
    ])
    func aWatchOffersWhatItCan(names: [String], version: String?, offer: String) async throws {
        let provider = CharacterProvider()
        provider.names.withLock { $0 = names }
        let runtime = try WidgetDeclarations([
            AppIntentConfiguration(
                kind: "k", intent: SelectCharacterIntent.self, provider: provider)
        ])
        let watch = WidgetDevice(.watchOS, osVersion: version.flatMap { OSVersion($0) })
        let offered = try await runtime.offer(ofKind: "k", on: watch)
        #expect("\(offered)".hasPrefix(offer))
        #expect(try await runtime.offer(ofKind: "k", on: WidgetDevice(.iOS)) == .configurable)
        await #expect(throws: WidgetFailure.self) {
            try await runtime.offer(ofKind: "other", on: watch)
        }
    }
}
