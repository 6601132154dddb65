import NIOHTTP1
import Testing
import WidgetModel

@testable import GatewayEngine
@testable import GatewayHTTP

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
