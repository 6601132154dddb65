import Testing

@testable import GatewayCore

@Suite struct ClientAttributesTests {
    static func client(
        _ stated: [String: [String]], token: [String: [String]] = [:],
        before: [String: [String]] = [:]
    ) throws(ClientAttributes.Refusal) -> ClientAttributes {
        try ClientAttributes(
            statedByClient: stated, token: token, before: before, selfDeclared: ["theme"])
    }

    @Test func `a backend vouches for all it states`() {
        let attributes = ClientAttributes(statedByBackend: ["account": ["42"], "theme": ["dark"]])
        #expect(attributes.own.isEmpty)
        #expect(attributes.vouched == ["account": ["42"], "theme": ["dark"]])
    }

    @Test func `a client states what the catalog lists and repeats what is vouched for`() throws {
        let attributes = try Self.client(
            ["theme": ["dark"], "account": ["2", "1", "1"], "team": ["7"]],
            token: ["account": ["1", "2"]], before: ["team": ["7"]])
        #expect(attributes.own == ["theme": ["dark"]])
        #expect(attributes.vouched == ["account": ["1", "2"], "team": ["7"]])
    }

    @Test func `the token overrides what was vouched for before`() throws {
        let attributes = try Self.client([:], token: ["team": ["8"]], before: ["team": ["7"]])
        #expect(attributes.vouched == ["team": ["8"]])
        #expect(throws: ClientAttributes.Refusal.contradictsToken(attribute: "team")) {
            try Self.client(["team": ["7"]], token: ["team": ["8"]], before: ["team": ["7"]])
        }
    }

    /// A name on the catalog's list that is vouched for is the token's to say all the same.
    @Test func `a client contradicts nobody who vouches`() {
        #expect(throws: ClientAttributes.Refusal.contradictsToken(attribute: "theme")) {
            try Self.client(["theme": ["dark"]], token: ["theme": ["light"]])
        }
        #expect(throws: ClientAttributes.Refusal.contradictsToken(attribute: "account")) {
            try Self.client(["account": ["1", "2"]], token: ["account": ["1"]])
        }
    }

    @Test func `what nobody vouches for is refused, the first by name`() {
        #expect(throws: ClientAttributes.Refusal.notVouched(attribute: "account")) {
            try Self.client(["b": ["1"], "account": ["42"], "theme": ["dark"]])
        }
    }
}
