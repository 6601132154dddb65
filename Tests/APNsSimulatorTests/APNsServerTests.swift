import APNsSimulator
import Foundation
import GatewaySigning
import GatewayTLS
import GatewayTestSupport
import Testing
import WidgetModel

/// The service over TLS, with libcurl as its client.
@Suite struct APNsServerTests {
    /// A listening service, and the settings that a client needs.
    private final class Service: Sendable {
        let authorization: String
        let server: APNsServer
        let ca: String
        private let directory: String

        init(
            clientCA: Bool = false, _ change: (inout SimulatedAPNs.Terms) -> Void = { _ in }
        ) throws {
            directory = try GatewayProcess.temporaryDirectory()
            let made = try DevelopmentCertificates.ensure(
                in: directory, now: Int64(Date().timeIntervalSince1970))
            let team = try TeamKey()
            authorization = try team.bearer(issuedAt: Int64(Date().timeIntervalSince1970))
            var terms = SimulatedAPNs.Terms()
            terms.keys = [try team.registered()]
            change(&terms)
            var settings = APNsServer.Settings(
                certificate: .file(made.certificate), key: .file(made.key))
            if clientCA { settings.clientCA = .file(made.ca) }
            server = try APNsServer(terms, settings)
            ca = made.ca
        }

        var url: String { "https://127.0.0.1:\(server.port)" }

        func http(timeoutSeconds: Int = 20) -> TestHTTP {
            TestHTTP(url: url, ca: ca, version: .two, timeoutSeconds: timeoutSeconds)
        }

        func push(
            _ http: TestHTTP, to token: String = JudgeFixture.token, id: String? = nil,
            body: String = #"{"aps":{"content-changed":true}}"#
        ) throws -> TestHTTPAnswer {
            var headers = [
                ("apns-push-type", "widgets"), ("apns-topic", "com.mygame.push-type.widgets"),
                ("authorization", authorization),
            ]
            if let id { headers.append(("apns-id", id)) }
            return try http.request("POST", "/3/device/\(token)", headers: headers, body: body)
        }
    }

    @Test func aPushIsTaken() async throws {
        let service = try Service()
        let id = UUID().uuidString.lowercased()
        let answer = try service.push(service.http(), id: id)
        #expect(answer.status == 200 && answer.version == "2" && answer.body.isEmpty)
        #expect(answer.header("apns-id") == id)
        #expect(answer.header("apns-unique-id").flatMap(PushID.init) != nil)
        let record = service.server.record
        #expect(record.devices[JudgeFixture.token]?.pushes.map(\.id.text) == [id])
        #expect(record.connections.count == 1 && record.providerTokens.count == 1)
        await service.server.stop()
        #expect(service.server.record.openConnections == 0)
    }

    @Test func productionGivesNoUniqueID() async throws {
        let service = try Service { $0.environment = .production }
        let answer = try service.push(service.http())
        #expect(answer.status == 200 && answer.header("apns-unique-id") == nil)
        #expect(answer.header("apns-id").flatMap(PushID.init) != nil)
        await service.server.stop()
    }

    @Test func aRefusalIsJSON() async throws {
        let service = try Service()
        service.server.script(JudgeFixture.token, [.refused(.unregistered, timestamp: 17)])
        let answer = try service.push(service.http())
        #expect(answer.status == 410)
        #expect(answer["reason"] == "Unregistered" && answer["timestamp"] == 17)
        await service.server.stop()
    }

    @Test(arguments: [
        PushBehaviour.resetStream(isTaken: true), .resetConnection(isTaken: true),
        .silence(isTaken: true),
    ])
    func anAnswerMayNotCome(behaviour: PushBehaviour) async throws {
        let service = try Service()
        service.server.script(JudgeFixture.token, [behaviour])
        let http = service.http(timeoutSeconds: 2)
        #expect(throws: TestHTTPError.self) { try service.push(http) }
        #expect(service.server.record.devices[JudgeFixture.token]?.taken == 1)
        await service.server.stop()
    }

    @Test func aBodyOfAnySizeIsAnswered() async throws {
        let service = try Service()
        let body = String(repeating: " ", count: 1_000_000)
        let answer = try service.push(service.http(), body: body)
        #expect(answer.status == 413 && answer["reason"] == "PayloadTooLarge")
        await service.server.stop()
    }

    @Test func goAwayEndsIdleConnections() async throws {
        let service = try Service()
        let http = service.http()
        #expect(try service.push(http).status == 200)
        service.server.goAway(reason: "Shutdown")
        while service.server.record.openConnections > 0 { usleep(1_000) }
        #expect(try service.push(http).status == 200)
        #expect(service.server.record.connections.count == 2)
        await service.server.stop()
    }

    @Test func aCertificateStandsForAnApp() async throws {
        let service = try Service(clientCA: true)
        let made = try PushCertificate(app: "com.mygame", ca: service.ca)
        func push(_ topic: String) throws -> String {
            let (exit, output) = try GatewayProcess.run(
                [
                    "-sS", "--http2", "--cacert", service.ca, "--cert", made.certificate, "--key",
                    made.key, "-H", "apns-push-type: widgets", "-H", "apns-topic: \(topic)", "-d",
                    #"{"aps":{"content-changed":true}}"#, "-w", "%{http_code}",
                    "\(service.url)/3/device/\(JudgeFixture.token)",
                ], program: "/usr/bin/curl")
            #expect(exit == .status(0))
            return output
        }
        #expect(try push("com.mygame.push-type.widgets") == "200")
        #expect(
            try push("com.other.push-type.widgets") == #"{"reason":"TopicDisallowed"}400"#)
        await service.server.stop()
    }

    @Test func withoutHTTP2NothingIsSaid() async throws {
        let service = try Service()
        let http = TestHTTP(url: service.url, ca: service.ca, version: .one, timeoutSeconds: 5)
        #expect(throws: TestHTTPError.self) { try service.push(http) }
        await service.server.stop()
    }
}
