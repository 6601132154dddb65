import GatewayTestSupport
import Testing
import WidgetModel

extension ProcessTests {
    /// The OpenAPI documents of a running gateway; `Deploy/check-api` checks its answers against
    /// them.
    @Suite struct APITests {
        @Test func `each port has its own document, whole in itself`() throws {
            let gateway = try GatewayProcess(admin: GatewayProcess.freeAddress())
            let admin = gateway.adminHTTP()
            let tls = try operations(gateway.http().request("GET", "/openapi.json"))
            let own = try operations(admin.request("GET", "/openapi.json"))
            #expect(tls.contains("getReloads") && !tls.contains("getMetrics"))
            #expect(own.contains("getMetrics") && !own.contains("getReloads"))
            #expect(own.isSuperset(of: tls.subtracting(["getReloads", "offerChanges"])))
        }

        /// Returns the ids of a document's operations, after resolving its references.
        private func operations(_ answer: TestHTTPAnswer) throws -> Set<String> {
            #expect(answer.status == 200 && answer.header("content-type") == "application/json")
            let document = try #require(answer.json)
            #expect(answer["openapi"] == "3.1.0")
            var ids: [String] = []
            func visit(_ value: JSONValue) {
                for member in value.objectValue?.members ?? [] {
                    if member.name == "operationId" { ids.append(member.value.stringValue ?? "") }
                    if member.name == "$ref", let reference = member.value.stringValue {
                        let steps = reference.split(separator: "/").dropFirst()
                        let part = steps.reduce(document as JSONValue?) {
                            $0?.objectValue?[String($1)]
                        }
                        #expect(reference.hasPrefix("#/") && part != nil, "\(reference)")
                    }
                    visit(member.value)
                }
                for element in value.arrayValue ?? [] { visit(element) }
            }
            visit(document)
            #expect(Set(ids).count == ids.count)
            return Set(ids)
        }
    }
}
