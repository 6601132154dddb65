import Foundation
import GatewayCore
import Synchronization
import Testing

@testable import GatewayDelivery

@Suite(.timeLimit(.minutes(2))) struct DeliveryEngineTests {
    static func engine(
        _ server: ScriptedServer, _ change: (inout DeliveryEngine.Configuration) -> Void = { _ in }
    ) throws -> DeliveryEngine {
        var configuration = DeliveryEngine.Configuration(name: "test")
        configuration.trust = .file(server.certificate)
        configuration.answerFields = ["apns-id", "retry-after"]
        change(&configuration)
        return try DeliveryEngine(configuration)
    }

    static func request(
        _ server: ScriptedServer, deadline: Duration = .seconds(60)
    ) throws -> DeliveryRequest {
        DeliveryRequest(
            origin: server.origin, target: "/3/device/00ff",
            fields: try DeliveryFields([("apns-topic", "com.example.game")]),
            body: Array(#"{"aps":{}}"#.utf8), deadline: deadline)
    }

    /// The code of what is thrown, if it is the engine's.
    static func code(
        _ engine: DeliveryEngine, _ request: DeliveryRequest
    ) async -> DeliveryError.Code? {
        do throws(DeliveryError) {
            _ = try await engine.send(request)
            return nil
        } catch {
            return error.code
        }
    }

    @Test func `an answer has its status, its fields and its body`() async throws {
        let server = try ScriptedServer([.ok, .reason, .busy, .redirect, .interim])
        let engine = try Self.engine(server)
        let request = try Self.request(server)
        let ok = try await engine.send(request)
        #expect(ok.status == 200 && ok.body == [] && ok.isWhole)
        #expect(ok.field(0) == "id-1" && ok.field(1) == nil && ok.field(7) == nil)
        let reason = try await engine.send(request)
        #expect(reason.status == 400 && reason.isWhole)
        #expect(String(decoding: reason.body, as: UTF8.self) == #"{"reason":"BadDeviceToken"}"#)
        let busy = try await engine.send(request)
        #expect(busy.status == 429 && busy.field(1) == "120")
        let redirect = try await engine.send(request)
        #expect(redirect.status == 302)
        let interim = try await engine.send(request)
        #expect(interim.status == 200 && interim.field(0) == "id-9")
        #expect(engine.figures.underWay == 0)
        #expect(engine.figures.connections == 1 && engine.figures.handles == 1)
        await engine.drain()
        #expect(engine.figures == DeliveryFigures())
    }
}
