import APNsSimulator
import Foundation
import GatewaySigning
import GatewayTLS
import GatewayTestSupport
import Testing
import WidgetModel

/// The service over TLS, with libcurl as its client.
@Suite struct APNsServerTests {
    /// A listening service, and what a client needs to push to it.
    private final class Service: Sendable {
        let authorization: String
        let server: APNsServer
        let ca: String
        private let directory: String

        init(_ change: (inout SimulatedAPNs.Terms) -> Void = { _ in }) throws {
            directory = try GatewayProcess.temporaryDirectory()
            let made = try DevelopmentCertificates.ensure(
                in: directory, now: Int64(Date().timeIntervalSince1970))
            let team = try TeamKey()
            authorization = try team.bearer(issuedAt: Int64(Date().timeIntervalSince1970))
            var terms = SimulatedAPNs.Terms()
            terms.keys = [try team.registered()]
            change(&terms)
            server = try APNsServer(
                terms,
                APNsServer.Settings(certificate: .file(made.certificate), key: .file(made.key)))
            ca = made.ca
        }

        func push(
            _ version: TestHTTPVersion = .two, body: String = #"{"aps":{"content-changed":true}}"#
        ) throws -> TestHTTPAnswer {
            let http = TestHTTP(
                url: "https://127.0.0.1:\(server.port)", ca: ca, version: version)
            return try http.request(
                "POST", "/3/device/\(JudgeFixture.token)",
                headers: [
                    ("apns-push-type", "widgets"), ("apns-topic", "com.mygame.push-type.widgets"),
                    ("authorization", authorization),
                ], body: body)
        }
    }

    @Test(arguments: SimulatedEnvironment.allCases)
    func onlyTheSandboxGivesAUniqueID(environment: SimulatedEnvironment) async throws {
        let service = try Service { $0.environment = environment }
        let answer = try service.push()
        #expect(answer.status == 200 && answer.version == "2" && answer.body.isEmpty)
        #expect(answer.header("apns-id").flatMap(PushID.init) != nil)
        let isUnique = answer.header("apns-unique-id").flatMap(PushID.init) != nil
        #expect(isUnique == (environment == .sandbox))
        await service.server.stop()
        #expect(service.server.record.openConnections == 0)
    }

    @Test func aBodyOfAnySizeIsAnswered() async throws {
        let service = try Service()
        let answer = try service.push(body: String(repeating: " ", count: 1_000_000))
        #expect(answer.status == 413 && answer["reason"] == "PayloadTooLarge")
        await service.server.stop()
    }

    @Test func channelsAreManagedAtTheSameAddress() async throws {
        let service = try Service()
        let http = TestHTTP(
            url: "https://127.0.0.1:\(service.server.port)", ca: service.ca, version: .two)
        let path = "/1/apps/com.mygame/channels"
        var fields = [("authorization", service.authorization)]
        let created = try http.request(
            "POST", path, headers: fields,
            body: #"{"message-storage-policy":1,"push-type":"LiveActivity"}"#)
        #expect(created.status == 201 && created.header("apns-request-id") != nil)
        fields.append(("apns-channel-id", try #require(created.header("apns-channel-id"))))
        #expect(try http.request("GET", path, headers: fields)["message-storage-policy"] == 1)
        await service.server.stop()
    }

    @Test func withoutHTTP2NothingIsSaid() async throws {
        let service = try Service()
        #expect(throws: TestHTTPError.self) { try service.push(.one) }
        await service.server.stop()
    }
}
