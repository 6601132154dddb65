import GatewayOperations
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOHTTP2
import Synchronization
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayServer
@testable import GatewayTLS

@Suite struct RouteTableTests {
    private func names(_ target: String, _ path: String) -> [String]? {
        let route = GatewayRoute(.GET, path) { _, _ in throw CancellationError() }
        let segments = PathSegments(target)
        return segments.match(route.path)
            ? segments.names(route.path).map { "\($0.name)=\($0.text)" } : nil
    }

    @Test(arguments: [
        ("/v1/apps/a/clients/c", ["app=a", "client=c"]),
        ("/v1/apps/a/clients/c?x=/y", ["app=a", "client=c"]),
        ("//v1/apps//a/clients/c/", ["app=a", "client=c"]),
        ("/v1/apps/a%2Fb/clients/:client", ["app=a%2Fb", "client=:client"]),
        ("https://localhost:8443/v1/apps/a/clients/c?x", ["app=a", "client=c"]),
        ("HTTP://[::1]/v1/apps/a/clients/c", ["app=a", "client=c"]),
        ("/v1/apps/ä/clients/#", ["app=ä", "client=#"]),
    ])
    func aRouteHasWhatStandsForItsNames(target: String, expected: [String]) {
        #expect(names(target, "/v1/apps/:app/clients/:client") == expected)
    }

    @Test(arguments: [
        ("/a/b", false), ("/a/b?/", false), ("https://host/a", false), ("/", true), ("/a/", true),
        ("//a", true), ("/a//b", true), ("/a/?b", true), ("https://host//a", true),
    ])
    func whatIsEmptyIsNoticed(target: String, hasEmpty: Bool) {
        #expect(PathSegments(target).hasEmpty == hasEmpty)
    }

    @Test(arguments: [
        "", "/", "?", "*", "v1/apps/a/clients/c", "https://host",
        "https://host?/v1/apps/a/clients/c",
        "ftp://host/v1/apps/a/clients/c", "x?https://host/v1/apps/a/clients/c",
        "/v1/apps/a/clients", "/v1/apps/a/clients/c/d", "/v1/apps/a/client/c",
        "/v1/apps/a/clientsx/c", "/V1/apps/a/clients/c", "/v1/apps/a/clients?/c",
        "/v1/apps/a/%63lients/c",
    ])
    func whatDiffersIsAnotherRoute(target: String) {
        #expect(names(target, "/v1/apps/:app/clients/:client") == nil)
    }
}

/// The answers to the errors of routes, and their lines in the log.
@Suite struct FailedRequestTests {
    private struct Unknown: Error {}

    private final class Lines: Sendable {
        let all = Mutex<[String]>([])
    }

    private let lines = Lines()

    /// Returns the status of the response when the route throws, and the lines of the log.
    private func respond(
        throwing error: any Error, source: Result<SourceAddress?, ProblemDetails> = .success(nil)
    ) async throws -> (status: Int, lines: [String]) {
        let log = GatewayLog(.logfmt, LogLevels()) { [lines] line in
            lines.all.withLock { $0.append(line) }
        }
        let logger = log.logger("timeline-gateway")
        let limits = RequestLimits(
            rates: RateLimits(), bytesInWork: 1, metrics: GatewayMetrics(),
            log: SampledLog(logger, now: { 0 }), now: { 0 })
        let route = GatewayRoute(.GET, "/v1/apps/:app/x") { _, _ in throw error }
        let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/v1/apps/game/x")
        let answer = try await RouteTable([route], limits: limits).respond(
            to: GatewayRequest(head: head, body: .whole(nil), source: source),
            on: NIOAsyncTestingChannel(), logger: logger)
        return (Int(answer.head.status.code), lines.all.withLock { $0 })
    }

    @Test func `a request without room is logged, and not as an error`() async throws {
        let (status, lines) = try await respond(throwing: Problem.unavailable("It is full."))
        #expect(status == 503 && lines.count == 1)
        for part in [
            "level=info", "a request was answered with 503", "app=game", "reason=\"It is full.\"",
        ] {
            #expect(lines.first?.contains(part) == true, "\(lines)")
        }
    }

    @Test(
        arguments: [
            TLSError(.protocolViolation(.emptyRecords), "too many"), ChannelError.inputClosed,
            NIOHTTP2Errors.badClientMagic(),
        ] as [any Error])
    func `a client that ends a body pages nobody`(error: any Error) async throws {
        let (status, lines) = try await respond(throwing: error)
        #expect(status == 400 && lines.isEmpty, "\(lines)")
    }

    @Test func `an error of the gateway is one in the log`() async throws {
        let (status, lines) = try await respond(throwing: Unknown())
        #expect(status == 500 && lines.count == 1)
        #expect(lines.first?.contains("level=error") == true)
    }

    @Test func `a proxy's malformed field is logged`() async throws {
        let (status, lines) = try await respond(
            throwing: Unknown(), source: .failure(Problem.malformed("Forwarded")))
        #expect(status == 400 && lines.count == 1)
        #expect(lines.first?.contains("a proxy sent a malformed Forwarded field") == true)
    }
}

@Suite struct QueryTextTests {
    @Test(arguments: [
        "attribute=%FF:1", "attribute=account:%zz", "after=%C3%28", "attribute=account:%",
        "attribute=account:7%00", "attribute=account%00:7", "after=a%00b",
    ])
    func whatIsNoTextIsRefused(query: String) {
        let problem = #expect(throws: ProblemDetails.self) { try QueryText.parameters(query) }
        #expect(problem?.status == 400)
    }
}
