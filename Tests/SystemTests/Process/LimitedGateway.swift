import GatewayTestSupport
import Testing
import WidgetModel

/// A gateway with the options of a test, and two apps.
struct LimitedGateway {
    static let other = "com.other"
    let gateway: any TestGateway
    let game: GameFixture
    let otherBackend: String

    /// - Parameters:
    ///   - options: Lines of its configuration.
    ///   - asProcess: Whether it is a process of its own.
    init(_ options: String, asProcess: Bool = false) throws {
        gateway = try GatewayConfiguration(["publicURL: https://gateway.test", options])
            .start(asProcess: asProcess)
        game = try GameFixture(gateway)
        otherBackend = try gateway.token(
            app: Self.other, scope: "catalog:write changes:write clients:write")
        let put = try gateway.http().request(
            "PUT", "/v1/apps/\(Self.other)/catalog", token: otherBackend,
            body: "{\"app\": \"\(Self.other)\", \"widgets\": []}")
        try #require(put.status == 201, "\(put.text)")
    }

    /// Registers a client; returns the status, after checking the text of a refusal.
    func register(_ client: String, isOther: Bool = false) throws -> Int {
        let answer = try gateway.http().register(
            client, app: isOther ? Self.other : GameFixture.app,
            token: isOther ? otherBackend : game.backend, ["platform": "iOS"])
        if answer.status == 422 {
            #expect(answer.text.contains("problem:too-many-clients"))
            #expect(answer.text.contains("limits.clientsPerApp"))
        }
        return answer.status
    }

    /// Posts a change; returns the status, after checking the text of a refusal.
    func post(_ id: String, isOther: Bool = false) throws -> Int {
        let answer = try gateway.http().post(
            [event(source: "test", id: id, entity: "Character", key: "panda")],
            app: isOther ? Self.other : GameFixture.app,
            token: isOther ? otherBackend : game.backend)
        if answer.status == 429 {
            #expect(answer.text.contains("problem:log-full"))
            #expect(answer.text.contains("limits.logBytesPerApp"))
            #expect(answer.header("retry-after") == "60")
        }
        return answer.status
    }

    func gauge(_ name: String, app: String = GameFixture.app) throws -> Int? {
        try gateway.metrics()["timeline_gateway_\(name){app=\"\(app)\"}"].map { Int($0) }
    }
}
