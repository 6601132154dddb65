import Testing
import WidgetModel

@testable import GatewayCore

@Suite struct RegistrationTermsTests {
    private func record(_ attributes: [String: [String]]) -> ClientRecord {
        ClientRecord(
            client: "phone", registration: ClientRegistration(platform: "iOS"),
            attributes: ClientAttributes(backend: attributes))
    }

    @Test func `without a registration nothing is allowed`() {
        let terms = RegistrationTerms(vouched: [:])
        #expect(throws: RegistrationTerms.Rejection.notRegistered) { try terms.accept(nil) }
    }

    @Test func `a token may vouch for what is registered, in any order, and for more`() throws {
        let terms = RegistrationTerms(vouched: ["account": ["2", "1"], "theme": ["dark"]])
        let record = record(["account": ["1", "2"], "household": ["9"]])
        #expect(try terms.accept(record) === record)
    }

    @Test func `a token that vouches for other values is refused`() {
        let terms = RegistrationTerms(vouched: ["account": ["1"]])
        #expect(
            throws: RegistrationTerms.Rejection.attributes(.tokenContradicts(attribute: "account"))
        ) {
            try terms.accept(record(["account": ["2"]]))
        }
    }
}
