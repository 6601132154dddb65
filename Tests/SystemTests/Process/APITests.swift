import GatewayTestSupport
import Testing
import WidgetModel

/// The OpenAPI documents of a running gateway; `Deploy/check-api` checks its answers against
/// them.
@Suite(.alone) struct APITests {
    @Test func `each port has its own document`() throws {
        let gateway = try LocalGateway()
        let tls = try operations(gateway.http())
        let own = try operations(gateway.adminHTTP())
        #expect(tls.contains("getReloads") && !tls.contains("getMetrics"))
        #expect(own.contains("getMetrics") && !own.contains("getReloads"))
        #expect(own.isSuperset(of: tls.subtracting(["getReloads", "offerChanges"])))
    }

    /// Returns the ids of the operations in a port's document.
    private func operations(_ port: TestHTTP) throws -> Set<String> {
        let answer = try port.request("GET", "/openapi.json")
        #expect(answer.status == 200 && answer.header("content-type") == "application/json")
        #expect(answer["openapi"] == "3.1.0")
        let ids = answer.text.matches(of: /"operationId": ?"(\w+)"/).map { String($0.1) }
        #expect(Set(ids).count == ids.count)
        return Set(ids)
    }
}
