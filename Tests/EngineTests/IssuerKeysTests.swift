import Foundation
import GatewayCore
import GatewayEngine
import GatewaySigning
import GatewayTLS
import GatewayTestSupport
import Logging
import Synchronization
import Testing
import WidgetModel

@testable import GatewayOperations
@testable import GatewayServer

@Suite(.timeLimit(.minutes(30))) struct IssuerKeysTests {
    /// Issuer keys with a clock that stands still, and the server that they come from.
    private final class Fixture: Sendable {
        let folder: String
        let certificates: DevelopmentCertificates
        let server: KeySetServer
        let first: SigningKey
        let seconds = Mutex<Int64>(1_000)
        let changes = Mutex(0)

        init() throws {
            folder = try GatewayProcess.temporaryDirectory()
            certificates = try DevelopmentCertificates.ensure(
                in: folder, now: Int64(Date().timeIntervalSince1970))
            first = try SigningKey()
            server = try KeySetServer(
                in: folder, certificates, keys: JWKSet([first.publicKey]).serialized)
        }

        func configuration(
            url: String? = nil, allowed: [String] = ["127.0.0.0/8", "::1"]
        ) throws -> GatewayOperations.GatewayConfiguration {
            var configuration = try GatewayOperations.GatewayConfiguration.development(
                data: folder, listen: Address(host: "127.0.0.1", port: 0),
                admin: Address(host: "127.0.0.1", port: 0))
            configuration.issuers = [
                IssuerSettings(
                    iss: "partner", apps: .any, scopes: [.client],
                    keys: .url(try WebhookEndpoint(url ?? server.url)))
            ]
            configuration.issuerKeyRanges = allowed.compactMap { AddressRange($0) }
            configuration.issuerKeyTrust = certificates.ca
            return configuration
        }

        func keys(_ configuration: GatewayOperations.GatewayConfiguration) throws -> IssuerKeys {
            let keys = try IssuerKeys(
                configuration, metrics: GatewayMetrics(),
                clock: GatewayClock(
                    now: { self.seconds.withLock { $0 } * 1_000 },
                    wallMilliseconds: { 0 }, sleep: { _ in }),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            keys.onChange { self.changes.withLock { $0 += 1 } }
            return keys
        }

        func kids(_ keys: IssuerKeys, of configuration: GatewayOperations.GatewayConfiguration)
            -> [String]
        {
            configuration.issuers.compactMap(\.keysURL).flatMap { keys.set(of: $0).keys.map(\.kid) }
        }

        func pass(_ seconds: Int64) { self.seconds.withLock { $0 += seconds } }
    }

    @Test func `a key that is published later is fetched when a token names it`() async throws {
        let fixture = try Fixture()
        let configuration = try fixture.configuration()
        let keys = try fixture.keys(configuration)
        #expect(fixture.kids(keys, of: configuration) == [])
        await keys.fetchMissing()
        #expect(fixture.kids(keys, of: configuration) == [fixture.first.kid])
        #expect(fixture.changes.withLock { $0 } == 1)
        let second = try SigningKey()
        try fixture.server.publish(JWKSet([second.publicKey]).serialized)
        // Anybody can send such tokens: they cause one request in half a minute at most.
        for _ in 0..<100 {
            keys.missesKey(of: "partner")
            await keys.fetchDue { _ in true }
        }
        #expect(fixture.server.requestCount == 1)
        keys.missesKey(of: "somebody else")
        fixture.pass(30)
        await keys.fetchDue { _ in true }
        #expect(fixture.kids(keys, of: configuration) == [second.kid])
        #expect(fixture.changes.withLock { $0 } == 2)
        // The age that the answer states.
        fixture.pass(599)
        await keys.fetchDue { _ in true }
        #expect(fixture.server.requestCount == 2)
        fixture.pass(1)
        await keys.fetchDue { _ in true }
        #expect(fixture.server.requestCount == 3)
        #expect(fixture.changes.withLock { $0 } == 2)
    }

    @Test func `an issuer that is down or publishes nothing usable keeps its keys`() async throws {
        let fixture = try Fixture()
        let configuration = try fixture.configuration()
        let keys = try fixture.keys(configuration)
        await keys.fetchMissing()
        for wrong in ["", "{}", #"{"keys":[]}"#, #"{"keys":[{"kty":"oct","k":"AQAB"}]}"#] {
            try fixture.server.publish(Array(wrong.utf8))
            let count = fixture.server.requestCount
            fixture.pass(600)
            await keys.fetchDue { _ in true }
            #expect(fixture.server.requestCount == count + 1)
            #expect(fixture.kids(keys, of: configuration) == [fixture.first.kid])
        }
        fixture.server.stop()
        fixture.pass(600)
        await keys.fetchDue { _ in true }
        #expect(fixture.kids(keys, of: configuration) == [fixture.first.kid])
        // A gateway that starts now has them from its data directory.
        let later = try fixture.keys(configuration)
        #expect(fixture.kids(later, of: configuration) == [fixture.first.kid])
        #expect(fixture.changes.withLock { $0 } == 1)
    }

    @Test func `an address of the gateway's own network is refused`() async throws {
        let fixture = try Fixture()
        let configuration = try fixture.configuration(allowed: [])
        let keys = try fixture.keys(configuration)
        await keys.fetchMissing()
        #expect(fixture.kids(keys, of: configuration) == [])
        #expect(fixture.server.requestCount == 0)
        // Before the next attempt is due: the change may be what mends it.
        try keys.use(try fixture.configuration())
        await keys.fetchDue { _ in true }
        #expect(fixture.kids(keys, of: configuration) == [fixture.first.kid])
    }

    @Test func `a redirection is not followed`() async throws {
        let fixture = try Fixture()
        let url = fixture.server.url.replacing("/keys", with: "/moved")
        let configuration = try fixture.configuration(url: url)
        let keys = try fixture.keys(configuration)
        await keys.fetchMissing()
        #expect(fixture.kids(keys, of: configuration) == [])
        #expect(fixture.server.requestCount == 1)
    }

    @Test func `an issuer that is no longer configured has no keys`() async throws {
        let fixture = try Fixture()
        let configuration = try fixture.configuration()
        let keys = try fixture.keys(configuration)
        await keys.fetchMissing()
        var without = configuration
        without.issuers = []
        try keys.use(without)
        #expect(fixture.kids(keys, of: configuration) == [])
        fixture.pass(10_000)
        await keys.fetchDue { _ in true }
        #expect(fixture.server.requestCount == 1)
    }
}
